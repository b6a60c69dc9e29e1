"""A machine becomes a head as a whole or not at all, once, and stops being one; over a root in a folder."""

import os
import signal
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.rigs.machines import DAEMONS, FakeHost, picture
from tests.waiting import until
from updraft.bootstrap import HeadSpec, quick
from updraft.bootstrap.head.transforms import GROUPS_SETTING
from updraft.bootstrap.head.userdata import head_config
from updraft.errors import ProblemFound, UsageError
from updraft.provision.setup import steps
from updraft.provision.setup.atwork import check_undisturbed
from updraft.provision.setup.files import NOTED, POOL_KEY, SAMPLES, START, TOKEN, UNIT, Place
from updraft.provision.setup.host import Host, Services, check_name, missing, remove_account
from updraft.provision.setup.selftest import run_one
from updraft.provision.setup.tree import Tree

SPEC = quick(HeadSpec("pool.test", "pool.test", condor_host="head.test", users=("anna",)))
PLACE = Place(unit="[Service]\nExecStart=/usr/local/bin/updraft run\n", run="/usr/local/bin/updraft run")
CONF = "/etc/condor/config.d/90-updraft.conf"


class Site:
    """A machine with HTCondor and nothing else, and what was said."""

    def __init__(self, root: Path) -> None:
        (root / "etc/condor/config.d").mkdir(parents=True)
        (root / "etc/condor/config.d/00-debian").write_text("LOCAL = 1\n")
        (root / "home").mkdir()
        self.host, self.tree, self.said = FakeHost(), Tree(root), list[str]()

    def intent(self, spec: HeadSpec = SPEC, place: Place = PLACE) -> steps.Intent:
        return steps.intend(self.host, self.tree, spec, place)

    def services(self) -> Services:
        return Services(self.host, START)

    def init(self, spec: HeadSpec = SPEC, place: Place = PLACE) -> None:
        intent = self.intent(spec, place)
        steps.refuse_conflicts(intent.changes)
        steps.carry_out(self.host, self.tree, self.services(), intent, self.said.append)

    def undo(self) -> list[str]:
        return steps.undo(self.host, self.tree, self.services(), self.said.append)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_head_is_written_started_and_lasting(site: Site) -> None:
    site.init()
    root = site.tree.root
    assert (root / CONF[1:]).read_text() == head_config(SPEC)
    assert (root / POOL_KEY[1:]).stat().st_mode & 0o777 == 0o600
    assert (root / "home/anna" / SAMPLES / "test.sh").stat().st_mode & 0o111
    assert site.host.running >= DAEMONS | {"updraft.service"}
    assert site.host.on == {"condor.service", "updraft.service"}
    assert site.host.accounts == {"anna": "/home/anna"}
    drop_in = (root / "etc/systemd/system/condor.service.d/updraft-head.conf").read_text()
    assert f"ExecStartPre=-{START}" in drop_in


def test_a_second_time_nothing_is_to_do_until_something_is_missing(site: Site) -> None:
    site.init()
    assert steps.nothing_to_do(site.services(), site.intent())
    site.host.running.discard("updraft.service")
    assert not steps.nothing_to_do(site.services(), site.intent())
    site.init()
    assert "updraft.service" in site.host.running
    assert steps.nothing_to_do(site.services(), site.intent())
    (site.tree.root / UNIT[1:]).unlink()
    assert not steps.nothing_to_do(site.services(), site.intent())


def test_a_change_restarts_only_what_reads_it(site: Site) -> None:
    site.init()
    site.host.calls.clear()
    site.init(place=replace(PLACE, unit=PLACE.unit + "UMask=0077\n"))
    assert "systemctl restart updraft.service" in site.host.calls
    assert "systemctl restart condor.service" not in site.host.calls
    site.host.calls.clear()
    site.init(replace(SPEC, job_lease=600.0), replace(PLACE, unit=PLACE.unit + "UMask=0077\n"))
    assert "systemctl restart condor.service" in site.host.calls
    assert "systemctl restart updraft.service" not in site.host.calls


def test_undo_leaves_the_machine_as_it_was(site: Site) -> None:
    before = picture(site.tree.root)
    site.init()
    assert site.undo() == []
    assert picture(site.tree.root) == before
    assert (site.host.running, site.host.on, site.host.accounts) == (set(), set(), {})


def test_undo_leaves_htcondor_running_where_it_ran_and_accounts_that_were_there(site: Site) -> None:
    site.host.accounts["anna"] = "/home/anna"
    site.host.running |= {"condor.service", "condor_master"}
    site.host.on.add("condor.service")
    site.init()
    assert "systemctl restart condor.service" in site.host.calls
    assert site.undo() == []
    assert "condor_master" in site.host.running
    assert site.host.on == {"condor.service"}
    assert site.host.accounts == {"anna": "/home/anna"}


def test_an_account_goes_with_what_htcondor_s_tools_note_there_and_stays_with_anything_else(
    site: Site, tmp_path: Path
) -> None:
    home = tmp_path / "home/anna"
    (home / ".condor").mkdir(parents=True)
    (home / ".condor/known_hosts").write_text("head.test SSL ...\n")
    site.host.accounts["anna"] = str(home)
    (home / ".condor/user_config").write_text("hers\n")
    assert "there is .condor/user_config at its home" in remove_account(site.host, "anna")
    (home / ".condor/user_config").unlink()
    assert remove_account(site.host, "anna") == ""
    assert site.host.accounts == {}


def test_what_htcondor_made_goes_with_the_head_and_what_was_there_stays(site: Site) -> None:
    made, kept = (site.tree.root / f"etc/condor/{name}.pem" for name in ("trust_domain_ca", "hostcert"))
    kept.write_text("the site's own")
    control = site.host.control

    def makes(verb: str, unit: str) -> tuple[int, str]:
        if verb == "start":
            made.write_text("a certificate")
        return control(verb, unit)

    site.host.control = makes  # type: ignore[method-assign]
    site.init()
    assert made.exists()
    noted = site.tree.root / NOTED[0][1:]
    noted.write_text("head.test SSL ...\n")
    assert steps.nothing_to_do(site.services(), site.intent())
    site.undo()
    assert not made.exists()
    assert not noted.exists(), "a tool of HTCondor's wrote it later"
    assert kept.read_text() == "the site's own"


@pytest.mark.parametrize("path", NOTED)
def test_what_htcondor_had_noted_before_stays(site: Site, path: str) -> None:
    noted = site.tree.root / path[1:]
    noted.parent.mkdir(parents=True, exist_ok=True)
    noted.write_text("other.test SSL ...\n")
    site.init()
    site.undo()
    assert noted.read_text() == "other.test SSL ...\n"


def test_a_way_back_that_fails_in_part_goes_on_and_hides_nothing(site: Site) -> None:
    before = picture(site.tree.root)
    site.host.comes_up = False
    control = site.host.control

    def stuck(verb: str, unit: str) -> tuple[int, str]:
        return (0, "") if (verb, unit) == ("stop", "updraft.service") else control(verb, unit)

    site.host.control = stuck  # type: ignore[method-assign]
    site.host.running.add("updraft.service")
    with pytest.raises(ProblemFound, match="condor_negotiator, condor_schedd did not start"):
        site.init()
    assert "not taken back: updraft.service does not end within 30 s" in site.said
    assert picture(site.tree.root) == before
    assert site.host.accounts == {}
    assert "condor.service" not in site.host.running


def test_an_undo_that_fails_in_part_does_the_rest_and_then_the_whole(site: Site) -> None:
    before = picture(site.tree.root)
    site.init()
    control = site.host.control
    site.host.control = lambda verb, unit: (  # type: ignore[method-assign]
        (0, "") if (verb, unit) == ("stop", "condor.service") else control(verb, unit)
    )
    with pytest.raises(
        ProblemFound, match=r"condor\.service does not end within 30 s; the rest is taken back"
    ):
        site.undo()
    assert not (site.tree.root / CONF[1:]).exists()
    assert site.host.accounts == {}
    assert "updraft.service" not in site.host.running
    site.host.control = control  # type: ignore[method-assign]
    assert site.undo() == []
    assert picture(site.tree.root) == before
    assert site.host.running == set()


def test_an_undo_after_which_htcondor_does_not_start_can_be_called_again(site: Site) -> None:
    before = picture(site.tree.root)
    site.host.running |= {"condor.service", "condor_master"}
    site.init()
    control = site.host.control
    site.host.control = lambda verb, unit: (  # type: ignore[method-assign]
        (1, "no memory") if (verb, unit) == ("start", "condor.service") else control(verb, unit)
    )
    with pytest.raises(ProblemFound, match="no memory"):
        site.undo()
    site.host.control = control  # type: ignore[method-assign]
    assert site.undo() == []
    assert "condor.service" in site.host.running
    assert picture(site.tree.root) == before


@pytest.mark.parametrize("managed", [True, False])
def test_an_htcondor_of_somebody_elses_is_neither_taken_for_ours_nor_ended(site: Site, managed: bool) -> None:
    site.host.others = set(DAEMONS)  # in a container, say: its processes are seen here
    if not managed:
        site.host.programs.discard("systemctl")
    before = picture(site.tree.root)
    with pytest.raises(ProblemFound, match="condor_collector") if not managed else nullcontext():
        site.init()
    if managed:
        assert site.undo() == []
    assert picture(site.tree.root) == before
    assert site.host.others == DAEMONS
    assert not [call for call in site.host.calls if call.startswith("signal")]


def test_an_htcondor_that_no_service_keeps_is_named_before_anything_is_done(site: Site) -> None:
    before = picture(site.tree.root)
    site.host.strange = {4711}
    with pytest.raises(UsageError, match=r"process 4711\), and not as condor.service: end it"):
        site.init()
    assert picture(site.tree.root) == before


def test_processes_are_known_by_more_than_a_number(tmp_path: Path) -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True)
    try:
        note, host = tmp_path / "pid", Host()
        note.write_text(f"{child.pid}\n")
        until(lambda: host.family_of(child.pid) == {"sh", "sleep"}, 10, "both are there")
        assert host.noted(str(note), "sleep 600") == child.pid
        assert host.noted(str(note), "condor_master") is None, "the number is another's by now"
        note.write_text("none")
        assert host.noted(str(note), "sleep 600") is None
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_a_file_in_the_way_stops_it_before_anything_is_done(site: Site) -> None:
    (site.tree.root / CONF[1:]).write_text("MINE = 1\n")
    before = picture(site.tree.root)
    with pytest.raises(UsageError, match=f"{CONF} is there already, and not updraft's: nothing was changed"):
        site.init()
    assert picture(site.tree.root) == before
    assert not site.host.accounts


@pytest.mark.parametrize("ran", [False, True])
def test_htcondor_that_does_not_come_up_leaves_the_machine_as_it_was(site: Site, ran: bool) -> None:
    if ran:
        site.host.running |= {"condor.service", "condor_master"}
    before = picture(site.tree.root)
    site.host.comes_up = False
    with pytest.raises(ProblemFound, match="condor_negotiator, condor_schedd did not start"):
        site.init()
    assert picture(site.tree.root) == before
    assert site.host.accounts == {}
    assert "updraft.service" not in site.host.running
    assert ("condor.service" in site.host.running) is ran, "as before"
    assert site.host.on == set()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("TRUST_DOMAIN", "other.test", 'reads TRUST_DOMAIN as "other.test", not "pool.test"'),
        ("CONDOR_HOST", "127.0.0.1", 'reads CONDOR_HOST as "127.0.0.1"'),
        ("DAEMON_LIST", "MASTER, STARTD", "lacks COLLECTOR, NEGOTIATOR, SCHEDD"),
        ("NETWORK_INTERFACE", "127.0.0.1", "where no worker reaches it"),
    ],
)
def test_settings_that_another_file_overrides_are_named_and_nothing_is_left(
    site: Site, name: str, value: str, sentence: str
) -> None:
    before = picture(site.tree.root)
    site.host.settings[name] = value
    where = f"{name} = {value}\n # at: /etc/condor/config.d/99-site.conf, line 3\n"
    site.host.answers[f"condor_config_val -v {name}"] = (0, where)
    with pytest.raises(UsageError, match=sentence) as error:
        site.init()
    assert "/etc/condor/config.d/99-site.conf, line 3" in str(error.value)
    assert picture(site.tree.root) == before
    assert "systemctl start condor.service" not in site.host.calls


def test_without_a_service_manager_htcondor_is_started_plainly(site: Site) -> None:
    site.host.programs.discard("systemctl")
    answer = site.host.answer

    def starts(words: list[str], user: str, folder: Path) -> tuple[int, str]:
        if words[:2] == ["sh", START]:
            site.host.running |= DAEMONS
        return answer(words, user, folder)

    site.host.answer = starts  # type: ignore[method-assign]
    site.init()
    assert f"sh {START} start" in site.host.calls
    assert not [call for call in site.host.calls if call.startswith("systemctl")]
    told = (site.tree.root / "etc/updraft/head.conf").read_text()
    assert "RUN='/usr/local/bin/updraft run'" in told


def test_roles_split_the_central_manager_from_the_submit_node(site: Site) -> None:
    manager = replace(SPEC, roles=("central-manager",), users=())
    submit = replace(SPEC, roles=("submit",))
    config, other = head_config(manager), head_config(submit)
    assert "DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR\n" in config
    assert "QUEUE_SUPER_USERS" not in config
    believed = f"{GROUPS_SETTING} = True\n"
    assert believed in head_config(SPEC), "this head knows what its own schedd refuses"
    assert believed not in config + other
    assert "DAEMON_LIST = MASTER SCHEDD\n" in other
    assert "ADVERTISE_STARTD" not in other
    site.host.settings["DAEMON_LIST"] = "MASTER SCHEDD"
    site.init(submit, Place(token=".".join("abc")))
    root = site.tree.root
    assert (root / TOKEN[1:]).stat().st_mode & 0o777 == 0o600
    assert not (root / POOL_KEY[1:]).exists(), "it signs no tokens"
    assert not (root / UNIT[1:]).exists()
    assert site.host.now < 60


def test_a_submit_node_that_the_pool_does_not_take_is_none(site: Site) -> None:
    before = picture(site.tree.root)
    site.host.settings["DAEMON_LIST"] = "MASTER SCHEDD"
    site.host.answers["condor_status -schedd"] = (0, "")
    with pytest.raises(ProblemFound, match="the pool does not show this submit node: is its token"):
        site.init(replace(SPEC, roles=("submit",)), Place(token=".".join("abc")))
    assert picture(site.tree.root) == before


def test_every_account_that_was_made_is_known_to_the_undo(site: Site) -> None:
    before = picture(site.tree.root)
    site.init()
    site.init(replace(SPEC, users=("bert",)))
    assert site.host.accounts == {"anna": "/home/anna", "bert": "/home/bert"}
    assert site.undo() == []
    assert site.host.accounts == {}
    assert picture(site.tree.root) == before


# ------------------------------------------------------------------------------- an HTCondor that is at work


@pytest.mark.parametrize(
    ("settings", "queue", "sentence"),
    [
        ({"DAEMON_LIST": "MASTER, SCHEDD STARTD"}, (0, ""), "its STARTD would end, with the jobs that run"),
        ({"DAEMON_LIST": "MASTER SHARED_PORT SCHEDD CREDD"}, (0, ""), "its CREDD would end"),
        ({"UID_DOMAIN": "site.test"}, (0, "1\n1\n2\n"), "3 jobs of users of site.test, not pool.test"),
        ({"UID_DOMAIN": "site.test"}, (0, ""), ""),
        ({}, (0, "1\n"), "its queue has 1 job, and it would be restarted"),
        ({}, (1, "no answer\n"), r"its queue can't be asked \(no answer\)"),
        ({}, (0, ""), ""),
        ({"DAEMON_LIST": ""}, (0, ""), ""),
    ],
)
def test_an_htcondor_at_work_is_not_taken_over_unasked(
    site: Site, settings: dict[str, str], queue: tuple[int, str], sentence: str
) -> None:
    site.host.settings |= settings
    site.host.answers["condor_q -allusers"] = queue
    check = partial(check_undisturbed, site.host, site.tree, site.services(), SPEC, site.intent().book)
    check()  # it doesn't run
    site.host.running |= {"condor.service", "condor_master"}
    with pytest.raises(UsageError, match=sentence) if sentence else nullcontext() as error:
        check()
    assert not sentence or "say --disturb; nothing was changed" in str(error.value)


QUEUE = """\
105
101 0.0 Job Machine
103 0.0 NextClusterNum 4
101 0.1 User *
101 01.-1 Job Machine
101 1.0 Job Machine
103 1.0 Cmd "/bin/true"
101 1.1 Job Machine
102 1.0
106
"""


def test_a_queue_that_rests_keeps_its_users_too(site: Site) -> None:
    site.host.settings |= {"SPOOL": "/var/spool/condor", "UID_DOMAIN": "site.test"}
    spool = site.tree.root / "var/spool/condor"
    spool.mkdir(parents=True)
    check = partial(check_undisturbed, site.host, site.tree, site.services(), SPEC, site.intent().book)
    check()
    (spool / "job_queue.log").write_text(QUEUE)
    with pytest.raises(UsageError, match=r"has 1 job of users of site\.test, not pool\.test"):
        check()
    site.host.settings["UID_DOMAIN"] = "pool.test"
    check()


def test_a_head_may_be_changed_while_it_has_jobs_that_keep_their_users(site: Site) -> None:
    site.init()
    site.host.answers["condor_q -allusers"] = (0, "1\n")
    check = partial(check_undisturbed, site.host, site.tree, site.services(), book=site.intent().book)
    check(spec=SPEC)
    with pytest.raises(UsageError, match=r"1 job of users of pool\.test, not other\.test"):
        check(spec=replace(SPEC, uid_domain="other.test"))
    with pytest.raises(UsageError, match="its SCHEDD would end"):
        check(spec=replace(SPEC, roles=("central-manager",), users=()))


# ------------------------------------------------------------------------------------- the machine's names


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("nowhere.test", "no name that this machine can resolve"),
        ("debian.test", "loopback address"),
        ("other.test", "no address of this machine"),
        ("192.0.2.9", "no address of this machine"),
    ],
)
def test_a_name_by_which_workers_would_not_find_it_is_refused(address: str, sentence: str) -> None:
    host = FakeHost(names={"debian.test": {"127.0.1.1"}, "other.test": {"192.0.2.9"}}, own={"10.0.0.1"})
    with pytest.raises(UsageError, match=sentence):
        check_name(host, address)


def test_a_name_that_leads_here_will_do() -> None:
    host = FakeHost(names={"head.test": {"10.0.0.1", "192.0.2.9"}}, own={"10.0.0.1"})
    for name in ("head.test", "10.0.0.1"):
        check_name(host, name)
    with pytest.raises(UsageError, match="no address of this machine"):
        check_name(replace(host, own={"10.0.0.2"}), "head.test")


def test_a_machine_without_htcondor_is_told_what_installs_it() -> None:
    assert missing(FakeHost()) == ""
    assert "apt-get install condor" in missing(FakeHost(programs=set()))
    assert "dnf install condor" in missing(FakeHost(programs=set(), distribution="rhel"))
    assert missing(FakeHost(programs=set(), distribution="")).endswith("--install` does that")


def test_a_machine_of_a_cloud_needs_nftables_to_close_the_metadata_address(site: Site) -> None:
    assert "nftables isn't installed" in missing(FakeHost(cloud=True))
    assert missing(FakeHost(cloud=True, programs={"condor_master", "nft"})) == ""


def test_on_a_machine_of_a_cloud_the_door_is_kept_and_undo_takes_the_keeper_away(site: Site) -> None:
    before, place = picture(site.tree.root), replace(PLACE, metadata=True)
    site.init(place=place)
    assert "updraft-door.service" in site.host.running & site.host.on
    assert (site.tree.root / "usr/local/lib/updraft/door").exists()
    assert steps.nothing_to_do(site.services(), site.intent(place=place))
    site.host.running.discard("updraft-door.service")
    assert not steps.nothing_to_do(site.services(), site.intent(place=place))
    site.undo()
    assert "updraft-door.service" not in site.host.running | site.host.on
    assert picture(site.tree.root) == before


# --------------------------------------------------------------------------------------- the self-test's job


def runs(host: FakeHost, monkeypatch: pytest.MonkeyPatch, folder: Path, *statuses: int) -> None:
    """A queue in which the job has these statuses, one after the other; 0 is no longer in it, and done."""
    left = list(statuses)
    folder.mkdir()
    monkeypatch.setattr("updraft.provision.setup.selftest.tempfile.mkdtemp", lambda prefix: str(folder))
    answer = host.answer

    def answers(words: list[str], user: str, at: Path) -> tuple[int, str]:
        if words[0] == "condor_submit":
            assert (user, at) == ("anna", folder)
            return 0, "7.0 - 7.0\n"
        if words[0] == "condor_q" and "-af" in words:
            return 0, "no such file\n"
        if words[0] == "condor_q":
            now = left.pop(0) if len(left) > 1 else left[0]
            if now == 4:
                (folder / "out").write_text("job self-test began on w1\njob self-test is done\n")
            return 0, "[]" if now == 0 else f'[{{"JobStatus": {now}}}]'
        return answer(words, user, at)

    host.answer = answers  # type: ignore[method-assign]


def test_the_self_test_waits_for_its_job_and_tidies_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost()
    runs(host, monkeypatch, tmp_path / "job", 1, 1, 2, 4)
    ran = run_one(host, "anna", "/home/anna/test.sh", here=False, deadline=60)
    assert (ran.job, ran.seconds, ran.where) == ("7.0", 1.5, "w1")
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(5, "was held: no such file"), (3, "was removed"), (1, "isn't done within 60 s: `updraft explain 7.0`")],
)
def test_a_self_test_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, sentence: str
) -> None:
    host = FakeHost()
    runs(host, monkeypatch, tmp_path / "job", status)
    with pytest.raises(ProblemFound, match=sentence):
        run_one(host, "anna", "/home/anna/test.sh", here=False, deadline=60)
