"""updraft.toml: what it comes to, and how each fault of it is named."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft import config
from updraft.app.wiring import reach
from updraft.bootstrap.worker.reach import Reach
from updraft.config.lines import key_lines
from updraft.config.model import Settings, Timings
from updraft.config.values import units
from updraft.core import settings as core
from updraft.core.model import Billing, BudgetPeriod, BudgetScope
from updraft.errors import ConfigError, UsageError

GOOD = """\
[pool]
name = "demo"
state_dir = "state"

[clouds.here]
driver = "fake"
limits = { machines = 20 }
prices = { small = 1, big = "unknown" }

[clouds.there]
driver = "fake"

[classes.default]
image = { here = "worker", there = "worker-2" }
flavors = ["small", "m5.*"]
min = 1
max = 10
idle_limit = "1h30m"
attributes = { Site = '"CERN"', Cores = 4, Good = true }
slots = 2
layers = ["site.yaml", "#!/bin/sh\\ntrue"]

[limits]
cost_per_hour = 3

[timings]
cycle = "500ms"
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with a good configuration and the layer that it names."""
    (tmp_path / "site.yaml").write_text("#cloud-config\npackages: [git]\n")
    (tmp_path / "updraft.toml").write_text(GOOD)
    return tmp_path


def load(site: Path, old: str = "", new: str = "") -> Settings:
    """The good configuration with one text replaced."""
    assert old in GOOD
    (site / "updraft.toml").write_text(GOOD.replace(old, new, 1) if old else GOOD)
    return config.load(site / "updraft.toml")


def faults(site: Path, old: str, new: str) -> list[str]:
    """The sentences about the good configuration with one text replaced."""
    with pytest.raises(ConfigError) as caught:
        load(site, old, new)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


def test_values_reach_the_policy_in_seconds_and_plain_numbers(site: Path) -> None:
    policy = load(site).policy()
    worker = policy.classes["default"]
    assert worker.idle_limit == 5400.0
    assert worker.lifetime == 7 * 86400.0
    assert worker.clouds == ("here", "there")
    assert worker.images == {"here": "worker", "there": "worker-2"}
    assert worker.attributes == {"Site": '"CERN"', "Cores": "4", "Good": "true"}
    assert (worker.min_machines, worker.max_machines, worker.static_slots) == (1, 10, 2)
    assert policy.limits == core.Limits(cost_per_hour=3.0)
    assert policy.cloud_limits["here"] == core.Limits(machines=20)
    assert policy.timings.cycle == 0.5


def test_how_a_cloud_bills_reaches_the_policy(site: Path) -> None:
    assert load(site).policy().rule("here").billing == Billing(0.0, 0.0)
    more = '[clouds.here]\nbilling = "hour"\nbilling_minimum = "10m"'
    assert load(site, "[clouds.here]", more).policy().rule("here").billing == Billing(3600.0, 600.0)
    with pytest.raises(ConfigError, match=r"clouds.here.billing.*second.*minute.*hour"):
        load(site, "[clouds.here]", '[clouds.here]\nbilling = "day"')


def test_caps_of_users_reach_the_policy(site: Path) -> None:
    found = load(
        site,
        "[limits]",
        '[users.ada]\nmachines = 2\n[users."b*"]\ncores = 9\n'
        "[limits]\nmachines_per_user = 7\ncores_per_user = 5",
    ).policy()
    assert found.users == {"ada": core.UserLimits(machines=2), "b*": core.UserLimits(cores=9)}
    assert (found.limits.machines_per_user, found.limits.cores_per_user) == (7, 5)
    caps = "max_cores = 40\nmax_per_user = 3\nmax_cores_per_user = 6"
    made = (
        load(site, "max = 10", f'max = 10\n{caps}\nhigh_priority_users = "eve"').policy().classes["default"]
    )
    assert (made.max_cores, made.per_user) == (40, core.UserLimits(3, 6))
    assert made.high_priority_users == ("eve",)
    assert made.generation == load(site).policy().classes["default"].generation


def test_budgets_of_a_day_and_a_month_reach_the_policy(site: Path) -> None:
    more = """
[users.ada]
cost_per_month = 5
annex_cost_per_day = 2
[groups."physics.theory"]
cost_per_day = 7.5
[annexes]
users = ["b*"]
machines = 3
cost_per_month = 8
[usage]
idle_paid_by = "pool"
"""
    lines = 'cost_per_hour = 3\ncost_per_day = 20\ncost_per_month = 300\nwhen_spent = "drain"\n'
    found = load(site, "cost_per_hour = 3\n", lines + more).policy()
    day, month = BudgetPeriod.DAY, BudgetPeriod.MONTH
    assert set(found.spending) == {
        core.SpendingLimit(BudgetScope.POOL, "", day, 20.0),
        core.SpendingLimit(BudgetScope.POOL, "", month, 300.0),
        core.SpendingLimit(BudgetScope.USER, "ada", month, 5.0),
        core.SpendingLimit(BudgetScope.GROUP, "physics.theory", day, 7.5),
        core.SpendingLimit(BudgetScope.ANNEXES, "ada", day, 2.0),
        core.SpendingLimit(BudgetScope.ANNEXES, "ada", month, 8.0),
        core.SpendingLimit(BudgetScope.ANNEXES, "b*", month, 8.0),
    }
    assert (found.drain_when_spent, found.idle_charged) == (True, False)
    assert found.limits == core.Limits(cost_per_hour=3.0)
    cloud = load(site, "{ machines = 20 }", "{ machines = 20, cost_per_day = 4 }").policy()
    assert cloud.spending == (core.SpendingLimit(BudgetScope.CLOUD, "here", day, 4.0),)
    worker = load(site, "max = 10", "max = 10\ncost_per_month = 9")
    assert worker.policy().spending == (core.SpendingLimit(BudgetScope.CLASS, "default", month, 9.0),)
    assert worker.generation("default") == load(site).generation("default"), "it replaces nothing"
    assert load(site).policy().spending == ()


def test_machines_of_one_user_each_are_kept_for_nobody(site: Path) -> None:
    [told] = faults(site, "max = 10", "max = 10\nowner_only = true")
    assert "classes.default: min keeps machines that nobody waits for" in told
    before = load(site, "min = 1").generation("default")
    private = load(site, "min = 1", "owner_only = true")
    assert private.policy().classes["default"].owner_only
    assert private.generation("default") != before


def test_an_unknown_price_stays_unknown(site: Path) -> None:
    assert load(site).clouds["here"].prices == {"small": 1.0, "big": None}


def test_paths_start_at_the_file(site: Path) -> None:
    assert load(site).pool.state_dir == site / "state"
    assert config.place(site / "updraft.toml").ledger == load(site).pool.ledger


def test_layers_are_read_when_the_file_is(site: Path) -> None:
    layers = load(site).classes["default"].layers
    assert [(layer.name, layer.text) for layer in layers] == [
        ("site.yaml", "#cloud-config\npackages: [git]\n"),
        ("inline", "#!/bin/sh\ntrue"),
    ]


def test_timings_are_those_of_the_core_with_its_defaults() -> None:
    """But for the interval of the workers' ads, which follows from the pool's size."""
    assert {*Timings.model_fields, "update_interval"} == {field.name for field in fields(core.Timings)}
    assert core.Timings(**Timings().model_dump()) == core.Timings()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("worker-2", "worker-3"),
        ("Cores = 4", "Cores = 5"),
        ("slots = 2", "slots = 3"),
        ("idle_limit", 'lifetime = "2d"\nidle_limit'),
        ("idle_limit", 'head_gone_after = "2h"\nidle_limit'),
        ("sh\\\\ntrue", "sh\\\\nfalse"),
        ('state_dir = "state"', 'collector = "head.other"'),
    ],
)
def test_generation_changes_with_what_a_machine_is_launched_with(site: Path, old: str, new: str) -> None:
    before = load(site).generation("default")
    assert load(site, old.replace("\\\\", "\\"), new.replace("\\\\", "\\")).generation("default") != before


def test_generation_changes_with_the_content_of_a_layer(site: Path) -> None:
    before = load(site).generation("default")
    (site / "site.yaml").write_text("#cloud-config\npackages: [curl]\n")
    assert load(site).generation("default") != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("min = 1", "min = 2"),
        ("max = 10", "max = 9"),
        ("1h30m", "10m"),
        ("cost_per_hour = 3", "machines = 4"),
        ('"small", ', ""),
        ("500ms", "1s"),
        ("[classes.default]", "# a comment\n[classes.default]"),
    ],
)
def test_generation_stays_with_how_many_there_are(site: Path, old: str, new: str) -> None:
    before = load(site).generation("default")
    assert load(site, old, new).generation("default") == before


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"1h30m"', '"40"', 'line 18: classes.default.idle_limit: "40" has no unit; write "40m"'),
        ('"1h30m"', "40", "line 18: classes.default.idle_limit: 40 has no unit"),
        ('"1h30m"', '"soon"', 'line 18: classes.default.idle_limit: "soon" is not a duration'),
        ('"1h30m"', '"0s"', "line 18: classes.default.idle_limit: 0s is out of range"),
        ("max = 10", 'max = "10"', "line 17: classes.default.max: is not a whole number"),
        ("min = 1", "min = 11", "line 16: classes.default.min: 11 is more than max (10)"),
        ("min = 1", "min = -1", "line 16: classes.default.min: -1 is out of range; it must be at least 0"),
        ("max = 10", "maxx = 10", 'line 17: classes.default.maxx: there is no such key; did you mean "max"?'),
        ("cost_per_hour = 3", "memory = 64", "limits.memory: 64 has no unit"),
        ("[timings]", "[demand]\nmin_jobs = 0\n[timings]", "line 27: demand.min_jobs: 0 is out of range"),
        ("[timings]", "[demand]\nmin_wait = 45\n[timings]", "line 27: demand.min_wait: 45 has no unit"),
        ("[timings]", "[demand]\njobs = 3\n[timings]", "line 27: demand.jobs: there is no such key"),
        ("[timings]", "[timing]", 'line 26: timing: there is no such key; did you mean "timings"?'),
        (
            '"fake"\nlimits',
            '"fake"\npassword = "hunter2"\nlimits',
            "line 7: clouds.here.password: a credential",
        ),
        (
            '"fake"\nlimits',
            '"fake"\nzoness = ["a"]\nlimits',
            "clouds.here.zoness: there is no such key; did you",
        ),
        ('"fake"\nlimits', '"nimbus"\nlimits', 'line 6: clouds.here.driver: there is no driver "nimbus"'),
        ('"fake"\nlimits', '"local"\nlimits', "clouds.here.endpoint: is missing"),
        (
            '"fake"\nlimits',
            '"local"\nendpoint = "https://x"\nlimits',
            'line 7: clouds.here.endpoint: "https://x" is not an address of a local cloud',
        ),
        (
            '"fake"\nlimits',
            '"local"\nendpoint = "unix:/x"\ntimeout = 30\nlimits',
            "line 8: clouds.here.timeout: 30 has no unit",
        ),
        (
            '"fake"\nlimits',
            '"local"\nendpoint = "unix:/x"\ntimout = "30s"\nlimits',
            'line 8: clouds.here.timout: there is no such key; did you mean "timeout"?',
        ),
        (
            '"fake"\nlimits',
            '"fake"\nseed = "x"\nlimits',
            "line 7: clouds.here.seed: is not a whole number; write it without quotes",
        ),
        ('name = "demo"\n', "", "line 1: pool.name: is missing"),
        (
            'name = "demo"',
            'name = "demo"\ncollector = "a host"',
            'line 3: pool.collector: "a host" is not a host',
        ),
        ('here = "worker"', 'here = ""', "line 14: classes.default.image: is no image"),
        ("cost_per_hour = 3", "cost_per_hour = inf", "line 24: limits.cost_per_hour: is not a finite number"),
        (
            "cost_per_hour = 3",
            "cost_per_day = -1",
            "line 24: limits.cost_per_day: -1 is out of range; it must be at least 0",
        ),
        (
            "cost_per_hour = 3",
            "cost_per_month = nan",
            "line 24: limits.cost_per_month: is not a finite number; write a plain one",
        ),
        ("cost_per_hour = 3", 'when_spent = "kill"', "line 24: limits.when_spent: "),
        (
            "[limits]\ncost_per_hour = 3",
            "[groups.physics]\ncost = 3",
            "line 24: groups.physics.cost: there is no such key; ",
        ),
        (
            "[pool]\n",
            "[groups.physics]\ncost_per_day = 3\n[pool]\ntrust_groups = false\n",
            "groups.physics: a budget of an accounting group holds only where groups are trusted",
        ),
        ("min = 1", "min = 1.5", "line 16: classes.default.min: is not a whole number"),
        ("[limits]", "[limits\n", "line 23: this is not TOML"),
        ('name = "demo"', 'name = "a b"', 'line 2: pool.name: "a b" can\'t be a name'),
        (
            'name = "demo"',
            'name = "demo.heads"',
            'line 2: pool.name: "demo.heads" can\'t be the name of a pool',
        ),
        ('name = "demo"', 'name = "a.b.images"', 'tagged with; write "a-b-images", say'),
        ("'\"CERN\"'", '"CERN"', "line 19: classes.default.attributes.Site: CERN without quotes of its own"),
        (
            "'\"CERN\"'",
            '"(1 +"',
            "line 19: classes.default.attributes.Site: (1 + is not a ClassAd expression",
        ),
        (', there = "worker-2"', "", 'line 14: classes.default.image: says no image for the cloud "there"'),
        (
            "flavors =",
            'clouds = ["moon"]\nflavors =',
            "line 15: classes.default.clouds: there is no [clouds.moon]",
        ),
        (
            "flavors =",
            'head_gone_after = "5m"\nflavors =',
            "line 15: classes.default.head_gone_after: 5m is shorter",
        ),
        (
            "Cores = 4",
            "MaxJobRetirementTime = 4",
            'attributes.MaxJobRetirementTime: "MaxJobRetirementTime" means',
        ),
        ("Cores = 4", 'Cores = "1\\nSTART = False"', "attributes.Cores: is more than one line"),
        ("site.yaml", "gone.yaml", "line 21: classes.default.layers[0]: "),
        ("slots = 2", "slots = 0", "line 20: classes.default.slots: is neither"),
        ("small = 1", 'small = "dear"', "line 8: clouds.here.prices.small: is not a price"),
        ('"demo"', '"demo', "line 2"),
    ],
)
def test_a_fault_names_line_key_and_remedy(site: Path, old: str, new: str, sentence: str) -> None:
    found = faults(site, old, new)
    assert len(found) == 1
    assert sentence in found[0]
    assert found[0].startswith("updraft.toml")


def test_all_faults_of_a_file_are_named_in_its_order(site: Path) -> None:
    found = faults(site, 'name = "demo"', 'nmae = "demo"\ncollector = 3\njob_lease = 40')
    assert [line.split(": ")[1] for line in found] == [
        "pool.name",
        "pool.nmae",
        "pool.collector",
        "pool.job_lease",
    ]


def test_faults_of_drivers_are_named_beside_all_others(site: Path) -> None:
    found = faults(site, '"fake"\nlimits', '"fake"\nzoness = ["a"]\nlimit')
    assert [line.split(":")[1].strip() for line in found] == ["clouds.here.zoness", "clouds.here.limit"]
    found = faults(site, 'name = "demo"', 'name = "demo"\ncycle = 3\n[clouds.c]\ndriver = "fake"\nzoness = 1')
    assert {line.split(":")[1].strip() for line in found} >= {"pool.cycle", "clouds.c.zoness"}


def test_a_secret_in_the_file_is_refused_and_not_repeated(site: Path) -> None:
    for old, new in [
        ('"fake"\nlimits', '"fake"\napi_secret = "hunter2"\nlimits'),
        ('name = "demo"', 'name = "demo"\ntoken = "eyJhunter2"'),
    ]:
        assert "hunter2" not in "".join(faults(site, old, new))


def test_the_tree_is_frozen(site: Path) -> None:
    settings = load(site)
    with pytest.raises(ValueError, match="frozen"):
        settings.pool.name = "other"


def test_the_file_is_found_by_option_then_environment_then_place(
    site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("UPDRAFT_CONFIG", raising=False)
    monkeypatch.setattr(config, "USUAL_PLACES", ("updraft.toml",))
    with pytest.raises(UsageError, match="no configuration"):
        config.find()
    (elsewhere / "updraft.toml").touch()
    assert config.find() == Path("updraft.toml")
    monkeypatch.setenv("UPDRAFT_CONFIG", str(site / "updraft.toml"))
    assert config.find() == site / "updraft.toml"
    assert config.find("updraft.toml") == Path("updraft.toml")
    with pytest.raises(UsageError, match="no such file"):
        config.find("missing.toml")


@given(st.integers(min_value=0, max_value=10**8))
def test_durations_are_spelled_as_they_are_read(length: int) -> None:
    assert units.seconds(units.spell(float(length))) == length


def test_lines_of_every_form_of_key() -> None:
    text = (
        '# first\n\n[a]\nx = """\n1\n2"""\ny.z = 1\n'
        '[a.b]\n"odd key" = [\n 1,\n]\nq = { r = 1 }\n[[c]]\nk = 1\n[[c]]\nk = 2\n'
    )
    lines = key_lines(text)
    assert {".".join(map(str, path)): line for path, line in lines.items()} == {
        "a": 3, "a.x": 4, "a.y": 7, "a.y.z": 7, "a.b": 8, "a.b.odd key": 9, "a.b.q": 12, "a.b.q.r": 12,
        "c": 13, "c.0": 13, "c.0.k": 14, "c.1": 15, "c.1.k": 16,
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------- CernVM-FS

PEM = "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n"
OWN = '{ name = "soft.example.org", server = "http://10.0.0.2/cvmfs/@fqrn@", key = "soft.pub" }'


def software(tmp_path: Path, lines: str) -> Settings:
    (tmp_path / "soft.pub").write_text(PEM)
    (tmp_path / "soft.masterkey").write_text(PEM.replace("PUBLIC", "RSA PRIVATE"))
    file = tmp_path / "updraft.toml"
    file.write_text(f'[pool]\nname = "p"\n[clouds.c]\ndriver = "fake"\n[classes.w]\nimage = "i"\n{lines}\n')
    return config.load(file)


def test_repositories_are_names_or_tables_and_the_planner_believes_in_them(tmp_path: Path) -> None:
    settings = software(tmp_path, f'cvmfs = ["atlas.cern.ch", {OWN}]')
    atlas, own = settings.classes["w"].cvmfs
    assert (atlas.name, atlas.server, own.server, own.key_text) == (
        "atlas.cern.ch", "", "http://10.0.0.2/cvmfs/@fqrn@", PEM,
    )  # fmt: skip
    believed = settings.policy().classes["w"].attributes
    assert believed["HAS_CVMFS_atlas_cern_ch"] == "true"
    assert believed["UpdraftCVMFS"] == '"atlas.cern.ch,soft.example.org"'
    assert software(tmp_path, 'cvmfs = "cms.cern.ch"').classes["w"].cvmfs[0].name == "cms.cern.ch"


def test_what_is_mounted_is_part_of_the_generation_and_nothing_is_not(tmp_path: Path) -> None:
    texts = (
        "", 'cvmfs_proxy = "DIRECT"', 'cvmfs = "a.b"', 'cvmfs = "a.c"',
        'cvmfs = "a.b"\ncvmfs_proxy = "http://s:3128"',
    )  # fmt: skip
    found = [software(tmp_path, text).generation("w") for text in texts]
    assert found[0] == found[1]
    assert len(set(found)) == 4


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('cvmfs = "atlas"', "no full name"),
        ('cvmfs = [{ name = "a.b", server = "http://h" }]', "both server"),
        ('cvmfs = [{ name = "a.b", server = "ftp://h", key = "soft.pub" }]', "must begin with http"),
        ('cvmfs = [{ name = "a.b", server = "http://h", key = "no.pub" }]', "can't be read"),
        ('cvmfs = [{ name = "a.b", server = "http://h", key = "soft.masterkey" }]', "no public key"),
        ('cvmfs = "a.b"\ncvmfs_proxy = "squid:3128"', "no proxy"),
        ('cvmfs = "a.b"\ncvmfs_proxy = "DIRECT;"', "no proxy"),
        ('cvmfs = "a.b"\ncvmfs_pins = "abc"', "no fingerprint"),
        ('cvmfs = "a.b"\ncvmfs_client = "cvmfsexec"', "needs cvmfs_source"),
        (
            f'cvmfs = "a.b"\ncvmfs_client = "cvmfsexec"\ncvmfs_source = "https://h/f"\n'
            f'cvmfs_pins = "{"a" * 64}"\ncvmfs_proxy = "auto"',
            "in its file",
        ),
    ],
)
def test_software_that_cannot_be_mounted_is_refused(tmp_path: Path, lines: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        software(tmp_path, lines)


# ------------------------------------------------------------------------------------ how workers are reached


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('reach = "tunnel"', "reach"),
        ('ccb = "broker.test:9618"', 'reach is not "ccb"'),
        ('reach = "ccb"\nccb = "broker test"', "no broker"),
        ('forwarding_host = "192.0.2.1"', 'reach is not "forwarded"'),
        ('reach = "forwarded"\nforwarding_host = "host"', "no address"),
    ],
)
def test_a_way_that_leads_nowhere_is_refused(tmp_path: Path, lines: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        software(tmp_path, lines)


def test_how_workers_are_reached_reaches_them(tmp_path: Path) -> None:
    collectors = ("head.test:9618?sock=collector", "other.test")
    ways = {
        "": Reach(),
        'reach = "ccb"': Reach(broker="head.test:9618?sock=broker"),
        'reach = "ccb"\nccb = "broker.test:9700"': Reach(broker="broker.test:9700"),
        'reach = "forwarded"': Reach(host="metadata"),
        'reach = "forwarded"\nforwarding_host = "192.0.2.1"': Reach(host="192.0.2.1"),
    }
    found = {lines: software(tmp_path, lines) for lines in ways}
    assert {lines: reach(one.classes["w"], collectors) for lines, one in found.items()} == ways
    assert len({one.generation("w") for one in found.values()}) == len(ways)
