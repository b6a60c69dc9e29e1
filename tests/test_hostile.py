"""Job ads are untrusted input: no path is opened, no address fetched, no text executed because a job said so.

The second half of rule 9, as a property: ads that name a file, a socket and a command in all the places where
something might take them at their word go all the way that ads go, from the schedd's row to the plan's words.
"""

import ctypes
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import classad2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.rigs.bindings import htcondor2  # noqa: F401 - its functions are part of the language of ads
from tests.rigs.reading import worker as user_data_of
from tests.rigs.snapshots import FLAVORS, policy, snapshot, worker
from updraft.bootstrap.worker.userdata import worker_config
from updraft.condor.demand.groups import MAX_GROUPS, group
from updraft.condor.demand.terms import NAMES as TERMS
from updraft.core.matching.match import Matcher
from updraft.core.model import JobGroup, Kind
from updraft.core.plan import plan
from updraft.core.slots.kinds import kind_key
from updraft.core.slots.variants import MOST_EACH, choices, wanted

IN_ACCESS, IN_OPEN = 0x1, 0x20
SLOT = "[ Cpus = 8; Memory = 16384; Disk = 80000000; Requirements = TARGET.RequestCpus <= MY.Cpus ]"


@dataclass
class Bait:
    """A file, a listening socket and a command: what touches any of them is seen."""

    file: Path
    ear: socket.socket
    watch: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ear.getsockname()[1]}/x"

    @property
    def command(self) -> str:
        return f"touch {self.file.with_name('ran')}"

    def taken(self) -> list[str]:
        """What was touched since the last time that this was asked."""
        found = []
        with suppress(BlockingIOError):
            found.append(f"the file: {os.read(self.watch, 4096)!r}")
        with suppress(BlockingIOError):
            self.ear.accept()[0].close()
            found.append("the address")
        if self.file.with_name("ran").exists():
            found.append("the command")
        return found


@pytest.fixture(scope="module")
def bait(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bait]:
    file = tmp_path_factory.mktemp("bait") / "secret"
    file.write_text("not for a job\n")
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert watch >= 0
    assert libc.inotify_add_watch(watch, os.fsencode(file), IN_ACCESS | IN_OPEN) >= 0
    with socket.create_server(("127.0.0.1", 0)) as ear:
        ear.setblocking(False)
        yield Bait(file, ear, watch)
    os.close(watch)


def test_the_bait_is_seen_to_be_taken(bait: Bait) -> None:
    assert bait.taken() == []
    bait.file.read_bytes()
    socket.create_connection(bait.ear.getsockname()[:2]).close()
    assert [what.partition(":")[0] for what in bait.taken()] == ["the file", "the address"]
    bait.taken()


NAMES = (
    "Cmd", "Iwd", "In", "Out", "Err", "TransferInput", "x509userproxy", "DockerImage", "ContainerImage",
    "Owner", "User", "AccountingGroup", "Environment", "Arguments", "UserLog", "JobIds", "RequestMemory",
    "Rank", "Requirements", "UpdraftRunTime", "AuthTokenSubject", "include", "PublicInputFiles",
    *TERMS,
)  # fmt: skip
FORMS = (
    "{0}", "file://{0}", "|{0}", "$({0})", "`{0}`", "; {0} #", "__import__('os').system('{0}')", "$ENV({0})",
    "%({0})s", "{{{{ {0} }}}}", "@{0}", "include : {0}", "\x1b]0;{0}\x07",
)  # fmt: skip
CALLS = (
    '"{0}"', 'userHome("{0}")', 'userMap("{0}", "x")', 'eval("{0}")', 'unparse({0})', 'regexp("{0}", "x")',
    'stringListMember("x", "{0}")', 'splitSlotName("{0}")[1]', 'envV1ToV2("{0}")', 'listToArgs({{"{0}"}})',
    'mergeEnvironment("{0}")', 'evalInEachContext("{0}", {{MY}})', 'strcat("{0}", MY.Cmd) == "x"',
    'size("{0}") > 0 && TARGET.Cpus > 0', 'TARGET["{0}"]', 'debug("{0}")', 'getField("{0}")',
)  # fmt: skip


def quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@st.composite
def ads(draw: st.DrawFn, things: tuple[str, ...]) -> str:
    """A job's ad in which several attributes name one of these things, as a text or inside an expression."""
    lines = ['Owner = "eve"', "RequestCpus = 1"]
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=8, unique=True)):
        said = draw(st.just("{0}") | st.sampled_from(FORMS)).format(draw(st.sampled_from(things)))
        lines.append(f"{name} = {draw(st.just(CALLS[0]) | st.sampled_from(CALLS)).format(quoted(said))}")
    return "[ " + "; ".join(lines) + " ]"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_9_nothing_is_opened_fetched_or_run_because_a_job_said_so(bait: Bait, data: st.DataObject) -> None:
    """Rule 9: from the row to the plan, with every word that is said about it."""
    things = (str(bait.file), bait.url, bait.command)
    texts = data.draw(st.lists(ads(things), min_size=1, max_size=3))
    rows = [row for row in map(parsed, texts) if row is not None]
    for row in rows:
        row["JobStatus"], row["JobCount"], row["ClusterId"] = 1, 3, 1
    groups = [replace(one, key=str(n)) for n, one in enumerate(group("schedd", rows))]
    kinds = [Kind(kind_key("default", "g1", "c1", name), SLOT, whole) for name, (whole, _) in FLAVORS.items()]
    verdicts = {(g.key, k.key): Matcher().judge(g, k, 1_000_000.0) for g in groups for k in kinds}
    made = plan(snapshot(groups=groups, verdicts=verdicts), policy())
    assert repr(made)
    assert bait.taken() == []


def parsed(text: str) -> classad2.ClassAd | None:
    try:
        return classad2.ClassAd(text)
    except classad2.ClassAdException:
        return None


# ------------------------------------------------------------------------------------- terms of strangers

EVIL = (
    '"; touch x; "',
    "$(touch x)",
    "`touch x`",
    "${{7*7}}",
    "{{ 7*7 }}",
    "%(x)s",
    "#{x}",
    "a\nb",
    "\x00",
    "a\x85b",
    "a\u2028b",
    "'",
    "\\",
)
INTEGERS = st.integers(-(2**63), 2**63 - 1)  # a ClassAd holds no others
OPEN_CLASS = replace(
    worker(), images_allowed=("*",), networks_allowed=("*",), vm_types=("*",), keep_alive_max=1e9
)


def asking(**terms: object) -> JobGroup:
    row = classad2.ClassAd({"Owner": "eve", "JobStatus": 1, "JobCount": 3, "ClusterId": 1, **terms})
    (found,) = group("schedd", [row])
    return found


@given(
    name=st.sampled_from(TERMS),
    value=st.sampled_from(EVIL) | st.text(max_size=60) | INTEGERS | st.floats() | st.booleans(),
    before=st.sampled_from(("", "c1:", "default:", "a,")),
)
@example("UpdraftImage", "{{ 7*7 }}", "")
def test_9_no_machine_is_made_of_words_that_are_none(name: str, value: object, before: str) -> None:
    """What is taken for a name reaches a machine's configuration as the text that it is, whole and quoted;
    the rest reaches nothing, however much the site allows."""
    group = asking(**{name: before + value if isinstance(value, str) else value})
    assert all(fault.text.isprintable() for fault in group.terms.faults)
    for made in choices(group, OPEN_CLASS):
        spec = user_data_of(variant=made, image=made.image or "forky")
        lines = worker_config(spec).replace("\\\n", "").splitlines()  # a long one is broken at its words
        plain = worker_config(user_data_of()).replace("\\\n", "").splitlines()
        assert {line.partition(" = ")[0] for line in lines} - OF_A_VARIANT == {
            line.partition(" = ")[0] for line in plain
        }
        for line in lines:
            key, _, said = line.partition(" = ")
            if key in OF_A_VARIANT or key in ("UpdraftImage", "VMType"):
                text = said.replace("$(DOLLAR)", "$")
                assert isinstance(classad2.ExprTree(text).eval(), str), line
                assert "$" not in said.replace("$(DOLLAR)", "")


OF_A_VARIANT = {"UpdraftVariant", "UpdraftNetwork", "UpdraftUser", "UpdraftLayers"}


def test_a_megabyte_in_every_term_is_a_group_that_is_not_planned_for() -> None:
    begun = time.process_time()
    for name in (*TERMS, "Requirements"):
        group = asking(**{name: "(" * 1_000_000})
        assert not group.evaluable
        assert len(repr(group)) < 5_000
    assert time.process_time() - begun < 10


@pytest.mark.slow
def test_ten_thousand_strange_groups_leave_the_others_their_decision() -> None:
    """Of what the schedd groups, only so much is planned with, and whoever sends it takes nobody's place."""
    honest = [
        classad2.ClassAd({"Owner": f"u{n}", "JobStatus": 1, "JobCount": 50, "ClusterId": n + 1})
        for n in range(50)
    ]
    strange = [
        classad2.ClassAd(
            {"Owner": "eve", "JobStatus": 1, "JobCount": 60, "ClusterId": n + 100, "VMAMI": f'c1:i{n}"{{'}
        )
        for n in range(10_000)
    ]
    groups = group("schedd", [*honest, *strange])
    assert len(groups) <= MAX_GROUPS + 1
    assert {f"u{n}" for n in range(50)} <= {group.owner for group in groups if group.evaluable}
    assert wanted(groups, policy(classes={OPEN_CLASS.name: OPEN_CLASS})) == {}


def test_one_user_has_only_so_many_machines_of_one_kind_each() -> None:
    groups = [asking(VMAMI=f"i{n}") for n in range(100)]
    wants = wanted(groups, policy(classes={OPEN_CLASS.name: OPEN_CLASS}))
    assert 0 < sum(len(some) for some in wants.values()) <= MOST_EACH
