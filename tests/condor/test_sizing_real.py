"""The settings of a pool's size, with the image's own condor_config_val."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.bootstrap.test_sizing import DATA
from tests.rigs.pools.livepool import image
from updraft.bootstrap.sizing import PoolSize, configuration, knowledge, rendered

pytestmark = pytest.mark.integration

# Its own mounts, so that the image stays as it is; a host name that can't be resolved is a minute's wait.
_ASK = (
    'mount -t tmpfs tmpfs "$0/mnt" && cat > "$0/mnt/config" && hostname localhost && '
    'ip link set lo up && exec chroot "$0" condor_config_val "$@"'
)
_ALONE = {
    "CONDOR_CONFIG": "/mnt/config",
    "_CONDOR_NO_DNS": "true",
    "_CONDOR_DEFAULT_DOMAIN_NAME": "pool.test",
}
# These are in no table; the programs that have them do without.
_IN_A_PROGRAM = {
    "NEGOTIATOR_CYCLE_DELAY": "condor_negotiator",
    "SCHEDD_ENABLE_PER_USER_MATCH_LIMITS": "condor_schedd",
}
# The programs of daemons with names of their own are no parameters.
_NOT_IN_A_TABLE = {*_IN_A_PROGRAM, "<NAME>", "<NAME>_ARGS", "<NAME>_LOG"}
_LINE = re.compile(r"(?P<name>[\w.]+) = (?P<value>.*)")


def ask(config: str, *words: str) -> str:
    done = subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "sh", "-c", _ASK, str(image()), *words],
        input=config,
        env={"PATH": os.environ["PATH"], **_ALONE},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    wrong = [line for line in done.stderr.splitlines() if "network_interfaces" not in line]
    assert not wrong
    return done.stdout


def dump(config: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in ask(config, "-dump").splitlines() if not line.startswith("#"))
    return {name.strip().upper(): value.strip() for name, _, value in pairs}


@cache
def release() -> str:
    return knowledge().release(ask("", "CONDOR_VERSION").strip())


def test_the_defaults_are_as_they_are_known() -> None:
    known, real = knowledge().defaults[release()], dump("")
    assert {name: real.get(name) for name in known.keys() - _NOT_IN_A_TABLE} == {
        name: value for name, value in known.items() if name not in _NOT_IN_A_TABLE
    }


@pytest.mark.parametrize("name", _IN_A_PROGRAM)
def test_what_is_in_no_table_is_in_the_program_of_releases_that_know_it(name: str) -> None:
    program = (image() / "usr/sbin" / _IN_A_PROGRAM[name]).read_bytes()
    assert (name.encode() in program) == (name in knowledge().defaults[release()])


@pytest.mark.parametrize("file", sorted(DATA.glob("*.conf")), ids=lambda file: file.stem)
def test_each_file_is_read_as_it_is_meant(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    written = dict(match.groups() for line in text.splitlines() if (match := _LINE.fullmatch(line)))
    assert written
    # A list that names itself is filled in as it is read.
    meant = {
        name.upper(): value.replace("$(DAEMON_LIST)", knowledge().defaults[release()]["DAEMON_LIST"])
        for name, value in written.items()
    }
    plain, real = dump(""), dump(text)
    assert {name: real.get(name) for name in meant} == meant
    changed = {name for name, value in real.items() if plain.get(name) != value}
    # Which files were read, and what was found out meanwhile.
    assert changed - meant.keys() <= {
        name for name in changed if name.startswith(("DETECTED_", "CONFIG_", "PID"))
    }


def test_a_child_has_files_of_its_own_and_the_top_collector_above_it() -> None:
    text = "CONDOR_HOST = head.pool.test\n" + rendered(
        configuration(PoolSize(5000), "head", version=release()), "htcondor"
    )
    child = ("-subsystem", "COLLECTOR", "-local-name", "COLLECTOR2")
    names = ("COLLECTOR_LOG", "COLLECTOR_ADDRESS_FILE", "CONDOR_VIEW_HOST", "COLLECTOR_FORWARD_FILTERING")
    log, address, view, filtering = ask(text, *child, *names).splitlines()
    assert log.endswith("/Collector2Log")
    assert address.endswith("/.collector2_address")
    assert (view, filtering) == ("head.pool.test", "true")
    top_log, top_address = ask(text, "-subsystem", "COLLECTOR", *names[:2]).splitlines()
    assert top_log.endswith("/CollectorLog")
    assert top_address.endswith("/.collector_address")


def test_a_worker_reports_to_its_child() -> None:
    made = configuration(PoolSize(5000, reach="ccb"), "worker", version=release(), machine="i-0abc")
    text = "CONDOR_HOST = head.pool.test\n" + rendered(made)
    host, broker = ask(text, "-subsystem", "STARTD", "COLLECTOR_HOST", "CCB_ADDRESS").splitlines()
    assert re.fullmatch(r"head\.pool\.test\?sock=collector[1-5]", host)
    assert broker == host


def test_what_other_releases_are_told_is_read_too() -> None:
    """No name that the image knows is spelled in another way for an older one."""
    for each in knowledge().releases:
        for role in ("head", "submit", "worker"):
            made = configuration(PoolSize(20_000, reach="ccb"), role, version=each, machine="i-1")
            real = dump(rendered(made))
            for one in made.settings:
                if "$(DAEMON_LIST)" not in one.value:
                    assert real[one.name.upper()] == one.value
