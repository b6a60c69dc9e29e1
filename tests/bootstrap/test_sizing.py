"""The configuration of a pool of a size: golden files, and what must hold for every size.

The golden files are written anew by `python -m tests.bootstrap.test_sizing`; read the difference.
"""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.bootstrap.machine import early_steps, shipped
from updraft.bootstrap.sizing import (
    ROLES,
    Configuration,
    Knowledge,
    PoolSize,
    Setting,
    child_collectors,
    child_of,
    configuration,
    knowledge,
    rendered,
    settings,
    update_interval,
)
from updraft.bootstrap.sizing.setting import parameter
from updraft.bootstrap.sizing.size import broker_descriptors, collector_descriptors, schedd_descriptors
from updraft.errors import BootstrapError

DATA = Path(__file__).parent / "data/sizing"
SIZES = (50, 500, 5000, 20_000)
MACHINE = {"worker": "i-0abc"}

reaches = st.sampled_from(("direct", "ccb", "forwarded"))
sizes = st.builds(
    PoolSize,
    machines=st.integers(1, 100_000),
    slots=st.integers(1, 256),
    jobs=st.none() | st.integers(1, 500_000),
    schedds=st.none() | st.integers(1, 50),
    reach=reaches,
)
releases = st.sampled_from(knowledge().releases)


def golden(role: str, machines: int) -> str:
    return rendered(configuration(PoolSize(machines), role, version="feature", machine=MACHINE.get(role, "")))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("machines", SIZES)
def test_the_files_are_as_they_were_read(role: str, machines: int) -> None:
    assert golden(role, machines) == (DATA / f"{role}-{machines}.conf").read_text(encoding="utf-8")


def values(size: PoolSize, role: str, **choices: str) -> dict[str, str]:
    return {one.name: one.value for one in settings(size, role, **choices)}


def found(size: PoolSize, role: str) -> Configuration:
    return configuration(size, role, version="feature", machine=MACHINE.get(role, ""))


# ------------------------------------------------------------------------------ what always holds


@given(sizes, st.sampled_from(ROLES), releases)
def test_no_setting_is_there_twice_and_each_says_why(size: PoolSize, role: str, release: str) -> None:
    made = settings(size, role, version=release, machine="i-1")
    twice = [name for name, times in Counter(one.name for one in made).items() if times > 1]
    assert not twice
    for one in made:
        assert one.reason.endswith((".", ")"))
        assert one.source
        assert one.since
        assert "\n" not in one.name + one.value


@given(sizes, st.sampled_from(ROLES), releases)
def test_a_release_is_told_only_what_it_knows_and_has_not(size: PoolSize, role: str, release: str) -> None:
    own = knowledge().defaults[release]
    for one in settings(size, role, version=release, machine="i-1"):
        assert parameter(one.name) in own
        if parameter(one.name) == one.name:
            assert own[one.name].lower() != one.value.lower()


@given(sizes, st.integers(0, 50_000))
def test_more_machines_never_have_fewer_descriptors(size: PoolSize, more: int) -> None:
    grown = PoolSize(size.machines + more, size.slots, size.jobs, size.schedds, size.reach)
    for name, role in (
        ("COLLECTOR_MAX_FILE_DESCRIPTORS", "head"),
        ("SCHEDD_MAX_FILE_DESCRIPTORS", "submit"),
        ("SOCKET_LISTEN_BACKLOG", "head"),
    ):
        own = int(knowledge().defaults["25.14.1"][name])
        if name.startswith("SCHEDD") and size.schedds is None and size.jobs is None:
            continue  # they go to one schedd more
        assert int(values(grown, role).get(name, own)) >= int(values(size, role).get(name, own))


@given(sizes, st.integers(0, 50_000))
def test_more_machines_never_want_less_of_the_system(size: PoolSize, more: int) -> None:
    one_schedd = (size.slots, 5000, 1, size.reach)
    less, grown = PoolSize(size.machines, *one_schedd), PoolSize(size.machines + more, *one_schedd)
    for kind in ("kernel", "needs"):
        before = {one.name: one.at_least for one in getattr(found(less, "head"), kind)}
        after = {one.name: one.at_least for one in getattr(found(grown, "head"), kind)}
        assert all(after[name] >= value for name, value in before.items())
    unit, grown_unit = found(less, "head").unit, found(grown, "head").unit
    assert unit is None or (grown_unit is not None and grown_unit.at_least >= unit.at_least)


@given(sizes)
def test_what_is_open_is_within_every_limit(size: PoolSize) -> None:
    """The unit and the shared port carry what the daemons ask for, and a collector more than it keeps."""
    head, own = found(size, "head"), knowledge().defaults["25.14.1"]
    told = {one.name: one.value for one in head.settings}
    asked = [int(told.get(name, own[name])) for name in ("COLLECTOR_MAX_FILE_DESCRIPTORS",)]
    if size.head_submits:
        asked.append(int(told.get("SCHEDD_MAX_FILE_DESCRIPTORS", own["SCHEDD_MAX_FILE_DESCRIPTORS"])))
    shared = "SHARED_PORT_MAX_FILE_DESCRIPTORS"
    assert int(told.get(shared, own[shared])) >= max(asked)
    assert (32_768 if head.unit is None else head.unit.at_least) >= max(asked)
    children = child_collectors(size.machines)
    assert asked[0] >= size.sockets * size.machines / max(children, 1)


@given(st.integers(1, 200_000), st.integers(1, 64))
def test_workers_are_never_faster_than_the_collectors_like(machines: int, slots: int) -> None:
    interval = update_interval(machines, slots)
    assert 5 <= interval <= 300
    assert interval in (5, 300) or machines * (1 + slots) / interval <= 100
    assert update_interval(machines + 1, slots) >= interval


def test_a_pool_without_limits_and_a_small_one_look_as_often_as_ever() -> None:
    assert [update_interval(machines) for machines in (None, 1, 50, 55)] == [5, 5, 5, 5]
    assert [update_interval(machines) for machines in (500, 3000, 5000, 20_000)] == [45, 270, 300, 300]


# -------------------------------------------------------------------------------------- the tree


@given(st.text("abcdef0123456789-", min_size=1, max_size=40), st.integers(1, 300))
def test_a_machine_has_one_child_of_those_that_are_there(machine: str, children: int) -> None:
    assert 1 <= child_of(machine, children) <= children
    assert child_of(machine, children) == child_of(machine, children)


def test_machines_are_spread_over_the_children() -> None:
    """What `UNEVEN` makes room for, with a fixed set of ids."""
    shares = Counter(child_of(f"i-{number:017x}", 20) for number in range(20_000))
    assert len(shares) == 20
    assert max(shares.values()) < 1.25 * 1000


def test_every_child_that_a_worker_may_choose_is_there() -> None:
    head, children = values(PoolSize(5000), "head"), child_collectors(5000)
    assert head["DAEMON_LIST"].split()[1:] == [f"COLLECTOR{one}" for one in range(1, children + 1)]
    sockets = {head[f"COLLECTOR{one}_ARGS"].split()[-1] for one in range(1, children + 1)}
    for number in range(100):
        chosen = values(PoolSize(5000), "worker", machine=f"i-{number}")["COLLECTOR_HOST"]
        assert chosen.partition("?sock=")[2] in sockets


def test_no_two_collectors_share_a_file() -> None:
    head = values(PoolSize(5000), "head")
    files = [value for name, value in head.items() if name.startswith("COLLECTOR") and "$(" in value]
    files = [value for value in files if value not in ("$(COLLECTOR)", "$(COLLECTOR_HOST)")]
    logs = Counter(files)
    assert files
    assert all(times == (2 if value.endswith("Log") else 1) for value, times in logs.items())


def test_small_pools_have_no_tree_and_no_child() -> None:
    assert not [name for name in values(PoolSize(1000), "head") if name.startswith(("COLLECTOR1", "DAEMON"))]
    assert "COLLECTOR_HOST" not in values(PoolSize(1000), "worker", machine="i-1")


@pytest.mark.parametrize("machine", ["i-0abc1234", "a1b2c3d4-0000-4000-8000-00000000000f"])
def test_a_machine_chooses_at_boot_what_was_said_of_it(machine: str, tmp_path: Path) -> None:
    """The shell on the worker and the hash in Python are one rule."""
    [[_, _, script]] = early_steps(7)
    assert script.endswith(shipped("child.sh"))
    chosen = f"id={machine}\nchildren=7\n{shipped('child.sh')}".replace("/etc/condor/config.d", str(tmp_path))
    subprocess.run(["sh", "-eu", "-c", chosen], check=True)
    text = (tmp_path / "91-updraft-instance.conf").read_text()
    assert text == f"COLLECTOR_HOST = $(CONDOR_HOST)?sock=collector{child_of(machine, 7)}\n"


def test_the_advice_for_other_workers_chooses_the_same(tmp_path: Path) -> None:
    [note] = configuration(PoolSize(5000), "worker", version="feature").notes
    _, _, lines = note.partition("\n")
    said = subprocess.run(
        ["sh", "-eu", "-c", f"ID=i-77\n{lines}"], check=True, text=True, capture_output=True
    )
    assert said.stdout == f"COLLECTOR_HOST = $(CONDOR_HOST)?sock=collector{child_of('i-77', 5)}\n"


# ------------------------------------------------------------------------------------ of the rest


def test_a_broker_costs_a_descriptor_for_each_job() -> None:
    assert collector_descriptors(PoolSize(1000, reach="ccb")) == 2 * 1000 * (4 + 8) + 1000
    assert collector_descriptors(PoolSize(1000)) == 2 * 1000 * 2 + 1000
    assert broker_descriptors(1000) == 21_000
    assert values(PoolSize(800, reach="ccb"), "worker")["CCB_ADDRESS"] == "$(COLLECTOR_HOST)"


def test_jobs_beyond_one_schedd_go_to_submit_nodes() -> None:
    size = PoolSize(5000)
    assert (size.submit_nodes, size.jobs_each, size.head_submits) == (4, 10_000, False)
    assert schedd_descriptors(size) == 32_000
    assert not [name for name in values(size, "head") if name.startswith(("SCHEDD", "MAX_JOBS", "JOB_"))]
    assert "take 4 submit nodes" in found(size, "head").notes[0]
    assert values(PoolSize(5000, schedds=2), "submit")["MAX_JOBS_RUNNING"] == "20000"
    assert "MAX_JOBS_RUNNING" not in values(size, "submit")


@pytest.mark.parametrize("what", ["machines", "slots", "jobs", "schedds", "job_lease"])
def test_what_is_no_size_is_refused(what: str) -> None:
    with pytest.raises(BootstrapError, match=what.replace("_", " ")):
        PoolSize(**{"machines": 5, what: 0})


# ------------------------------------------------------------------------------------- of releases


@pytest.mark.parametrize(
    ("asked", "release"),
    [
        ("feature", "25.14.1"),
        ("26.1", "25.14.1"),
        ("25.14", "25.14.1"),
        ("25.3.1", "25.0.14"),
        ("25.0", "25.0.14"),
        ("24.0", "24.0.24"),
        ("24.0.7", "23.9.6"),
        ("23.10", "23.9.6"),
        ("23.0", "23.0.28"),
        ("23.0.3", "23.0.28"),
    ],
)
def test_a_version_is_taken_for_the_newest_known_that_is_not_newer(asked: str, release: str) -> None:
    assert knowledge().release(asked) == release


@pytest.mark.parametrize("asked", ["22.0", "10.0.9", "", "stable", "25", "25.x"])
def test_other_versions_are_refused(asked: str) -> None:
    with pytest.raises(BootstrapError, match="HTCondor"):
        knowledge().release(asked)


def test_what_a_release_does_not_know_is_not_written_for_it() -> None:
    known = Knowledge(("23.0.1", "25.0.1"), {"23.0.1": {"OLD": "1"}, "25.0.1": {"OLD": "1", "NEW": "no"}})
    wanted = [
        Setting("OLD", "2", "Why.", "x"),
        Setting("NEW", "yes", "Why.", "x"),
        Setting("NONE", "1", "", "x"),
    ]
    told = {release: list(known.worth_saying(wanted, release)) for release in known.releases}
    assert [one.name for one in told["23.0.1"]] == ["OLD"]
    assert [(one.name, one.since) for one in told["25.0.1"]] == [("OLD", "23.0"), ("NEW", "25.0")]


def test_a_default_is_left_out_but_not_where_a_child_needs_it() -> None:
    known = Knowledge(("25.0.1",), {"25.0.1": {"A": "True", "COLLECTOR_LOG": "x"}})
    same = [Setting("A", "true", "Why.", "x"), Setting("COLLECTOR2.COLLECTOR_LOG", "x", "Why.", "x")]
    assert [one.name for one in known.worth_saying(same, "25.0.1")] == ["COLLECTOR2.COLLECTOR_LOG"]


# ----------------------------------------------------------------------------------------- of files


def test_a_part_alone_is_a_file_of_its_own() -> None:
    made = configuration(PoolSize(20_000, reach="ccb", schedds=1), "head", version="feature")
    assert re.search(r"^\[Service\]\nLimitNOFILE=\d+$", rendered(made, "systemd"), re.MULTILINE)
    for line in rendered(made, "sysctl").splitlines():
        assert re.fullmatch(r"#.*|[a-z0-9_.-]+ = \d+", line)
    assert not [line for line in rendered(made).splitlines() if not re.fullmatch(r"(#.*|[\w.]+ = .+|)", line)]
    small = configuration(PoolSize(10), "head", version="feature")
    assert rendered(small, "systemd") == rendered(small, "sysctl") == ""


def test_the_kernels_limits_are_raised_and_never_lowered(tmp_path: Path) -> None:
    """The script that a head runs, on files of its own."""
    proc = tmp_path / "proc/sys"
    for name, now in {"fs/file-max": "9223372036854775807", "net/core/somaxconn": "4096"}.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(f"{now}\n")
    asked = tmp_path / "kernel.conf"
    asked.write_text("fs.file-max 200000\nnet.core.somaxconn 10000\nnet.netfilter.nf_conntrack_max 99999\n")
    script = shipped("raise-kernel.sh").replace("/proc/sys", str(proc))
    script = script.replace("/etc/updraft/kernel.conf", str(asked))
    for shell in filter(shutil.which, ("sh", "bash")):
        done = subprocess.run([shell, "-u", "-c", script], text=True, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (proc / "fs/file-max").read_text() == "9223372036854775807\n"
        assert (proc / "net/core/somaxconn").read_text() == "10000\n"
        assert not (proc / "net/netfilter").exists()


if __name__ == "__main__":
    for each in ROLES:
        for number in SIZES:
            (DATA / f"{each}-{number}.conf").write_text(golden(each, number), encoding="utf-8")
