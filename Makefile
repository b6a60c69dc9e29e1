# Every chore of the project. `make demo` and `make test` do all that they need by themselves.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.ONESHELL:
.DEFAULT_GOAL := help

BIN := .venv/bin
# The environment is made anew when the lock says something else, and only then.
LOCKED := .venv/.locked-$(shell sha256sum requirements/dev.lock | cut -c1-12)
INSTALLED := .venv/.installed
PYTEST := $(BIN)/python -m pytest
# What Python compiles is kept, whatever the environment says: every worker and every child would do it again.
export PYTHONDONTWRITEBYTECODE :=
# Every core is at work: some tests wait, and real pools mostly do, so that there are more at a time than cores.
SPREAD := -n $(shell echo $$(($(shell nproc) * 3 / 2))) --dist worksteal
REAL := -n 6 --dist loadscope --no-loadscope-reorder

.PHONY: help demo demo-jobs test test-all test-browser test-openstack quick integration lint format bench docs wheel install lock clean cloud prometheus chromium screenshots images hunt chaos

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) cloud ## a pool that grows and shrinks with its queue, on this machine alone (root)
	@$(BIN)/updraft demo $(DEMO)

demo-jobs: $(INSTALLED) cloud ## the three demonstration jobs of examples/ on a pool of their own (root)
	@$(BIN)/python -m updraft.cli.demo.jobs examples

# The real parts are taken from machine images, built once (a minute and a half); it takes root.
images: $(INSTALLED) cloud
	@for kind in "" "--suite trixie" "--without condor"; do
	  $(BIN)/updraft local image $$kind >/dev/null & building+=($$!)
	done
	for one in "$${building[@]}"; do wait "$$one"; done

IMAGE = $$($(BIN)/updraft local image | tail -n 1 | sed 's/^[^:]*: //')
# The core's lines are counted where its own tests run: it takes tests up to three times as long.
test: images prometheus ## the tests, with real HTCondor and real cloud-init (root)
	export UPDRAFT_TEST_IMAGE="$${UPDRAFT_TEST_IMAGE:-$(IMAGE)}"
	$(PYTEST) -m "core and not slow" $(SPREAD) tests/core --cov --cov-report=term:skip-covered
	$(PYTEST) -m "not integration and not browser and (slow or not core)" $(SPREAD)
	$(PYTEST) -m "integration and not extended" $(REAL)

# What is generated is new each time; SEED=… makes the same again.
SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
test-all: images prometheus ## everything: new generated cases, images, heads, walk-throughs, large pools (root; an hour)
	export UPDRAFT_TEST_IMAGE="$${UPDRAFT_TEST_IMAGE:-$(IMAGE)}"
	trap 'echo "the generated cases were those of SEED=$(SEED)"' EXIT
	HYPOTHESIS_PROFILE=explore $(PYTEST) -m "not integration and not browser" $(SPREAD) --hypothesis-seed=$(SEED)
	$(PYTEST) -m integration $(REAL)
	$(MAKE) test-browser
	if [ -n "$${OS_CLOUD:-}" ]; then $(MAKE) test-openstack; fi

quick: $(INSTALLED) ## the tests without real parts, but for the slow ones: a minute and a half on two cores
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not integration and not slow" $(SPREAD)

# It goes round until its time is over; SIGTERM and Ctrl-C end it sooner, with the same table of what was tried.
MINUTES = $(if $(HOURS),$$(($(HOURS) * 60)),60)
hunt: $(INSTALLED) ## the generated tests with cases that nobody has seen yet, for MINUTES=60 (or HOURS=…)
	$(PYTEST) -p tests.hunt --hunt=$(MINUTES) --hunt-seed=$(SEED) -m "hypothesis and not integration" \
		$(SPREAD) --quiet --no-summary

integration: images ## the tests with real parts only (root)
	export UPDRAFT_TEST_IMAGE="$${UPDRAFT_TEST_IMAGE:-$(IMAGE)}"
	$(PYTEST) -m integration $(REAL)

# Each view of a large pool's page, one test at a time: they measure how long a page takes.
test-browser: $(INSTALLED) chromium ## the page of `updraft web` in a real browser (root, where none is installed)
	$(PYTEST) -m browser tests/web

# It takes OS_CLOUD, and OS_CLIENT_CONFIG_FILE where clouds.yaml isn't in its usual places.
# UPDRAFT_TEST_OS_ADMIN names a cloud that may set the project's quota for the tests that need one,
# UPDRAFT_TEST_OS_SECOND that of a second project, UPDRAFT_TEST_EC2_URL an ec2-api before the first one.
test-openstack: $(INSTALLED) ## the openstack driver's tests against the project that OS_CLOUD names (ONLY=…: some)
	$(PYTEST) -m openstack tests/openstack $(if $(ONLY),-k "$(ONLY)")

lint: $(INSTALLED) ## style, types and the layers of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## put the code into the house's shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED) cloud ## the numbers of the project, as a table and as bench.json (root)
	$(BIN)/python -m tests.bench

docs: $(INSTALLED) ## write docs/reference/ from the code
	$(BIN)/python -m updraft.cli.reference docs/reference

# The same files make the same wheel, bit by bit.
wheel: $(INSTALLED) ## this build as dist/*.whl, with the hash that heads are told
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	sha256sum dist/*.whl

RUN_LOCK := src/updraft/run.lock
PREFIX ?= /opt/updraft
install: wheel ## this build and the lock's packages, into PREFIX (/opt/updraft)
	"$$(command -v python3.11 || command -v python3)" -m venv $(PREFIX)
	$(PREFIX)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(RUN_LOCK)
	$(PREFIX)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*.whl

# uv is found on the PATH or in the environment; it is needed for nothing else.
UV = $(or $(shell command -v uv),$(BIN)/uv)
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url pyproject.toml
# What is shipped, and installed on heads, are the versions that were tested.
lock: ## the newest versions that pyproject.toml allows, with their hashes
	$(COMPILE) --upgrade --group dev --output-file requirements/dev.lock
	$(COMPILE) --extra ec2 --extra openstack --extra web --constraint requirements/dev.lock --output-file $(RUN_LOCK)

# Long ones are runs of a quarter of an hour; SEED=… draws the same again, SHRINK=1 looks for the few that it takes.
CHAOS = --minutes $(MINUTES) --seed $(SEED) $(if $(SHRINK),--shrink) $(if $(WITHOUT),--without $(WITHOUT))
chaos: $(INSTALLED) cloud ## real pools with a cloud, daemons and a host that misbehave, for MINUTES=60 (root)
	$(BIN)/python -m tests.chaos $(CHAOS)

clean: ## remove what the chores made (images of machines stay)
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage bench.json bench-*.svg
	find src tests -name __pycache__ -prune -exec rm -rf {} +

cloud:
	@tools/prerequisites cloud

# Its rules, its metrics and each panel's query are tested with the real one; `make quick` does without it.
prometheus:
	@tools/prerequisites prometheus

screenshots: $(INSTALLED) chromium ## the pictures of the page in the docs (root, where no browser is installed)
	$(BIN)/python -m tests.rigs.web.screenshots docs/howto/web

chromium:
	@tools/prerequisites chromium

# The lock has all that is needed. A resolver would look for the newest of what is wanted with extras, and give up.
$(LOCKED): requirements/dev.lock
	@tools/prerequisites python
	rm -rf .venv
	"$$(command -v python3.11 || command -v python3)" -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.lock
	touch $@

$(INSTALLED): $(LOCKED) pyproject.toml
	$(BIN)/python -m pip uninstall --quiet --yes updraft 2>/dev/null # the name that it had before
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@
