"""`init`: what it asks, what it writes, and what it says of a pool that is already there."""

import contextlib
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.rigs.clouds.made import finding
from tests.waiting import deadline
from updraft import config
from updraft.bootstrap.head.identities import ENDED_SETTING, OWN_SETTING, REQUIREMENTS
from updraft.bootstrap.head.userdata import HeadSpec, head_config
from updraft.cli import main
from updraft.cli.setup import asking as init_asking
from updraft.cli.setup import cloud as init_cloud
from updraft.clouds.base import ImageInfo
from updraft.clouds.fake import FakeCloud
from updraft.core.model import CloudOffer, Resources
from updraft.ledger.made import made
from updraft.ledger.reader import Reader
from updraft.provision import pool_needs as init_pool

Capture = pytest.CaptureFixture[str]
FLAGS = ("--driver", "fake", "--image", "worker", "--pool-name", "physics")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory, no HTCondor, nobody at a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("UPDRAFT_CONFIG", raising=False)
    monkeypatch.delenv("UPDRAFT_DEBUG", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    monkeypatch.setattr(init_pool, "of_this_machine", dict)
    monkeypatch.setattr(config, "DEFAULT_STATE_DIR", str(tmp_path / "state"))


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main.call(["init", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


# -------------------------------------------------------------------------------------------------- flags


def test_flags_are_enough_and_the_file_passes_load(capsys: Capture) -> None:
    code, out, _ = run(capsys, *FLAGS)
    assert code == 0
    assert "updraft check" in out
    settings = config.load("updraft.toml")
    assert settings.pool.name == "physics"
    assert list(settings.clouds) == ["fake"], "a cloud is called as its driver, where nobody names it"
    assert settings.classes["default"].image == "worker"
    assert settings.limits.machines == 10
    text = Path("updraft.toml").read_text()
    assert "# cores = 40" in text
    assert re.search(r"^min = 0 +# machines kept even when nothing waits$", text, re.MULTILINE)


def test_every_flag_reaches_the_file(tmp_path: Path, capsys: Capture) -> None:
    flags = {
        "--cloud": "lab cloud", "--set": 'zones=["x", "y"]', "--flavor": "small", "--market": "spot",
        "--machines": "none", "--cores": "64", "--cost-per-hour": "2.5", "--min": "1", "--max": "5",
        "--idle-limit": "40m", "--collector": "head.lab", "--trust-domain": "lab", "--token": "t/ok",
        "--state-dir": "state", "--key": "none",
    }  # fmt: skip
    words = [word for pair in flags.items() for word in pair]
    code, _, err = run(capsys, *FLAGS, *words)
    assert (code, "can't be a name" in err) == (2, True)
    words[1] = "lab"
    assert run(capsys, *FLAGS, *words)[0] == 0
    settings = config.load("updraft.toml")
    worker, cloud = settings.classes["default"], settings.clouds["lab"]
    assert cloud.settings == {"zones": ["x", "y"]}
    assert (worker.flavors, worker.markets, worker.min, worker.max) == (("small",), ("spot",), 1, 5)
    assert worker.idle_limit == 2400
    assert (settings.limits.machines, settings.limits.cores, settings.limits.cost_per_hour) == (None, 64, 2.5)
    assert (settings.pool.collector, settings.pool.trust_domain) == ("head.lab", "lab")
    assert settings.pool.state_dir == tmp_path / "state"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "say --driver (one of ec2, fake, local, openstack)"),
        (("--driver", "fake"), "say --image"),
        (("--driver", "local", "--image", "x"), "say --endpoint"),
        (("--driver", "fkae"), 'there is no "fkae"; did you mean fake?'),
        ((*FLAGS, "--flavor", "smal"), "did you mean small?"),
        ((*FLAGS, "--flavor", "x*"), 'no name is like "x*"'),
        ((*FLAGS, "--machines", "many"), '--machines: "many" is no number'),
        ((*FLAGS, "--pool-name", "a b"), "--pool-name"),
        ((*FLAGS, "--pool-name", "lab.heads"), "--pool-name"),
        ((*FLAGS, "--set", "zones"), "KEY=VALUE"),
        ((*FLAGS, "--set", "zonse=1"), "zonse"),
        ((*FLAGS, "--idle-limit", "40"), "has no unit"),
        ((*FLAGS, "--pool", "existing"), "say --trust-domain"),
        (("--driver", "local", "--image", "x", "--endpoint", "unix:/x", "--key", "k"), "no key pairs"),
    ],
)
def test_what_is_missing_or_wrong_is_one_sentence_and_2_and_writes_nothing(
    tmp_path: Path, capsys: Capture, flags: tuple[str, ...], sentence: str
) -> None:
    code, _, err = run(capsys, *flags)
    assert code == 2
    assert sentence in err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_not_written_over_without_force(capsys: Capture) -> None:
    Path("updraft.toml").write_text("mine")
    code, _, err = run(capsys, *FLAGS)
    assert (code, "--force" in err) == (2, True)
    assert Path("updraft.toml").read_text() == "mine"
    assert run(capsys, *FLAGS, "--force")[0] == 0
    assert config.load("updraft.toml")


def test_who_has_no_pool_yet_is_told_of_a_head(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "site.toml"
    assert main.call(["--config", str(file), "init", *FLAGS, "--pool", "new"]) == 0
    assert f"updraft --config {file} head launch NAME" in capsys.readouterr().out


def test_config_says_where_it_is_written(tmp_path: Path, capsys: Capture) -> None:
    assert main.call(["--config", str(tmp_path / "etc" / "u.toml"), "init", *FLAGS]) == 0
    assert f"updraft --config {tmp_path}/etc/u.toml check" in capsys.readouterr().out
    assert config.load(tmp_path / "etc" / "u.toml")


def test_an_image_that_the_cloud_has_not_is_named_with_what_comes_near(capsys: Capture) -> None:
    words = ("--driver", "fake", "--set", 'images=["debian-12", "alma-9"]', "--image")
    code, _, err = run(capsys, *words, "debian-13")
    assert (code, "did you mean debian-12?" in err) == (2, True)
    assert run(capsys, *words, "debian-12")[0] == 0


def test_an_image_is_written_by_its_id_with_its_name_beside_it(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = (ImageInfo("ami-1", "worker", "available", "x86_64", "me"),)
    monkeypatch.setattr(FakeCloud, "images", lambda self: listed)
    assert run(capsys, *FLAGS)[0] == 0
    assert 'image = "ami-1"   # worker\n' in Path("updraft.toml").read_text()


def test_an_image_that_is_not_listed_is_looked_for(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    finding(monkeypatch, ImageInfo("ami-2", "debian", "available", "x86_64", "another"))
    words = ("--driver", "fake", "--set", 'images=["worker"]', "--image")
    assert run(capsys, *words, "ami-3")[0] == 2
    assert run(capsys, *words, "ami-2")[0] == 0
    assert 'image = "ami-2"' in Path("updraft.toml").read_text()


def test_a_cloud_that_does_not_answer_is_said_and_the_file_is_written(capsys: Capture) -> None:
    faults = 'faults=[{error="auth-failed", call="*"}]'
    code, _, err = run(capsys, *FLAGS, "--set", faults, "--key", "mine")
    assert code == 0
    assert "the cloud doesn't answer" in err
    assert config.load("updraft.toml").classes["default"].image == "worker"
    assert not Path(".ssh").exists()


def test_the_pools_own_job_lease_is_taken_up(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init_pool, "of_this_machine", lambda: {"JOB_DEFAULT_LEASE_DURATION": "7200"})
    assert run(capsys, *FLAGS)[0] == 0
    settings = config.load("updraft.toml")
    assert settings.pool.job_lease == settings.classes["default"].head_gone_after == 7200


# ---------------------------------------------------------------------------------------------- key pairs


def test_a_key_pair_is_made_and_its_private_key_is_its_owners(tmp_path: Path, capsys: Capture) -> None:
    code, out, err = run(capsys, *FLAGS, "--key", "mine", "--key-file", "keys/mine.pem")
    file = tmp_path / "keys" / "mine.pem"
    assert code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "private key" in file.read_text()
    assert "private key of" not in out + err
    assert config.load("updraft.toml").clouds["fake"].settings["key_name"] == "mine"
    with Reader(config.place(Path("updraft.toml")).ledger) as ledger:
        assert made(ledger) == {("fake", "key-pair", "mine")}


def test_a_key_pair_that_cannot_be_noted_is_made_all_the_same(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "state").write_text("no directory")
    code, _, err = run(capsys, *FLAGS, "--key", "mine", "--key-file", "mine.pem")
    assert code == 0
    assert (tmp_path / "mine.pem").exists()
    assert "`updraft leftovers` won't know" in err


def test_a_key_pair_that_was_there_is_not_noted(tmp_path: Path, capsys: Capture) -> None:
    assert run(capsys, *FLAGS, "--set", "key_name=mine", "--key", "mine")[0] == 0
    assert not (tmp_path / "state").exists()


def test_a_key_that_is_there_is_neither_made_nor_written_over(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.pem").write_text("precious")
    code, _, err = run(capsys, *FLAGS, "--key", "mine", "--key-file", "mine.pem")
    assert (code, "is there already" in err) == (2, True)
    assert (tmp_path / "mine.pem").read_text() == "precious"
    assert not Path("updraft.toml").exists()
    assert run(capsys, *FLAGS, "--set", "key_name=mine", "--key", "mine", "--key-file", "mine.pem")[0] == 0


def test_a_key_that_cannot_be_made_leaves_no_file(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--set", 'faults=[{error="bad-request", call="create_key_pair"}]', "--key", "mine")
    code, _, _ = run(capsys, *FLAGS, *words)
    assert code == 1
    assert not (tmp_path / ".ssh" / "mine.pem").exists()
    assert not Path("updraft.toml").exists()


@pytest.mark.parametrize("deletable", [True, False])
def test_a_private_key_that_cannot_be_saved_leaves_no_key_pair_to_choose(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, deletable: bool
) -> None:
    made: list[FakeCloud] = []
    create = FakeCloud.create_key_pair

    def creates(self: FakeCloud, name: str) -> str:
        made.append(self)
        return create(self, name)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FakeCloud, "create_key_pair", creates)
    monkeypatch.setattr("updraft.provision.keys.os.fsync", full)
    faults = [] if deletable else ["--set", 'faults=[{error="auth-failed", call="delete_key_pair"}]']
    code, _, err = run(capsys, *FLAGS, *faults, "--key", "mine", "--key-file", "keys/mine.pem")
    assert code == 2
    assert "No space left on device" in err
    assert ("deleted again" if deletable else "delete the key pair in the cloud") in err
    assert made[0].site.key_pairs == (set() if deletable else {"mine"})
    assert not (tmp_path / "keys/mine.pem").exists()
    assert not Path("updraft.toml").exists()


@pytest.mark.integration
def test_on_a_full_disk_no_key_pair_is_made(tmp_path: Path) -> None:
    """A real one, of 64 KiB, of which 12 are left."""
    script = (
        f"mount -t tmpfs -o size=64k full {tmp_path} && cd {tmp_path} && head -c 53248 /dev/zero >some && "
        'exec "$@"'
    )
    # Had the cloud been asked, it would have said something else.
    asked = ["--set", 'faults=[{error="bad-request", call="create_key_pair", message="it was asked"}]']
    words = [sys.executable, "-m", "updraft.cli.main", "init", *FLAGS, *asked, "--key", "mine"]
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", *words, "--key-file", f"{tmp_path}/mine.pem"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "it was asked" in done.stderr) == (2, False), done.stderr
    assert "mine.pem can't be written: No space left on device" in done.stderr


# ------------------------------------------------------------------------------------------ existing pools


def test_the_lines_of_an_existing_pool_are_those_of_a_head(capsys: Capture) -> None:
    code, out, _ = run(capsys, "--pool-lines", "--trust-domain", "lab.example.org")
    assert code == 0
    head = settings_in(head_config(HeadSpec("lab.example.org", "lab.example.org")))
    lines = settings_in(out)
    own = {REQUIREMENTS, ENDED_SETTING, OWN_SETTING}
    assert set(lines) == {name for name in head if "ALLOW_ADVERTISE" in name} | own
    assert lines.pop(OWN_SETTING) == "True"
    assert f"include ifexist : {lines.pop(ENDED_SETTING)}\n" in out
    assert lines.pop(REQUIREMENTS) == head[REQUIREMENTS]
    for name, value in lines.items():
        assert value.split()[-1] == head[name].split()[-1] == "worker-*@lab.example.org"
        assert f"$({name}:" in value, "who may already, may still"
    for text in (
        "/etc/condor/passwords.d/updraft-workers",
        "condor_token_create -identity worker-test@lab.example.org",
        "-key updraft-workers",
        "condor_reconfig",
        "To undo it",
        "rm /etc/condor/config.d/90-updraft.conf",
    ):
        assert text in out
    assert not Path("updraft.toml").exists()


@pytest.mark.parametrize("collector", [(), ("--collector", "head.lab")], ids=["on the head", "elsewhere"])
def test_the_lines_of_an_existing_pool_run_as_a_script(
    tmp_path: Path, capsys: Capture, collector: tuple[str, ...]
) -> None:
    """`init --pool-lines | sh -e`, before updraft has ever been started."""
    _, out, _ = run(capsys, "--pool-lines", "--trust-domain", "lab", *collector)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, code in {"condor_reconfig": 0, "condor_token_create": 0, "updraft": 1}.items():
        (programs / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "etc/config.d").mkdir(parents=True)
    done = subprocess.run(
        ["sh", "-e"], input=out.replace("/etc/condor", f"{tmp_path}/etc"), capture_output=True, text=True,
        env={"PATH": f"{programs}:{os.environ['PATH']}"}, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert len((tmp_path / "etc/passwords.d/updraft-workers").read_text()) > 80
    assert "worker-*@lab" in (tmp_path / "etc/config.d/90-updraft.conf").read_text()


def settings_in(text: str) -> Mapping[str, str]:
    return dict(re.findall(r"^([A-Z_.]+) = (.*)$", text, re.MULTILINE))


def test_a_controller_elsewhere_gets_a_token_of_its_own(capsys: Capture) -> None:
    _, out, _ = run(capsys, *FLAGS, "--pool", "existing", "--collector", "head.lab", "--trust-domain", "lab")
    assert "condor_token_create -identity updraft@lab -authz READ" in out
    assert "updraft@lab" in settings_in(out)["COLLECTOR.ALLOW_ADMINISTRATOR"]
    assert "updraft.toml is written" in out


def test_a_trust_domain_that_is_no_domain_is_refused(capsys: Capture) -> None:
    code, out, err = run(capsys, "--pool-lines", "--trust-domain", "lab\nEVIL = 1")
    assert (code, out, "--trust-domain" in err) == (2, "", True)


# -------------------------------------------------------------------------------------------- at a terminal


def test_flavors_are_listed_once_and_the_cheapest_first() -> None:
    def offer(flavor: str, price: float | None, market: str = "on-demand", zone: str = "a") -> CloudOffer:
        return CloudOffer("c", zone, flavor, market, Resources(2, 4096, 0, 1), price)

    offers = [offer("b", 2), offer("b", 2, zone="z"), offer("b", 1, "spot"), offer("a", 3), offer("c", None)]
    found = init_cloud.flavor_choices(offers)
    assert [one.value for one in found] == ["b", "a", "c"]
    assert found[0].cells[1:3] == ("2 cpus, 4 GiB, 1 GPU", "2 per hour")


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("2\n", "id-2"),
        ("id-3\n", "id-3"),
        ("alma\n", "id-1"),
        ("debian\n1\n", "id-2"),
        ("no\ndebian-13\n", "id-3"),
    ],
)
def test_a_list_is_chosen_from_by_number_name_or_part(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, typed: str, chosen: str
) -> None:
    names = ("alma-9", "debian-12", "debian-13")
    choices = [init_asking.Choice(f"id-{at}", (name,), (name,)) for at, name in enumerate(names, 1)]
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    asker = init_asking.Asker(person=True)
    assert asker.one_of(init_asking.SetupQuestion("--image", "Which?"), None, None, choices) == chosen
    assert "debian-12" in capsys.readouterr().err


def test_a_question_without_an_answer_says_that_one_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\na\n\nb\n"))
    asker = init_asking.Asker(person=True)
    choices = [init_asking.Choice(name, (), (name,)) for name in ("a", "b")]
    assert asker.one_of(init_asking.SetupQuestion("--one", "Which?"), None, None, choices) == "a"
    assert asker.text(init_asking.SetupQuestion("--text", "What?", "such as b"), None, None, str) == "b"
    assert "a number, a name" in (said := capsys.readouterr().err)
    assert "needed, such as b" in said


def test_a_part_of_a_flavors_name_shows_those_that_have_it(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    names = [f"{family}.{size}" for family in ("c4", "m5", "t3") for size in ("small", "large", "huge")]
    choices = [init_asking.Choice(name, (), (name,)) for name in names]
    monkeypatch.setattr(init_asking, "SHOWN", 2)
    monkeypatch.setattr("sys.stdin", io.StringIO("t3\n9, m5.*\n"))
    asker = init_asking.Asker(person=True)
    chosen = asker.some_of(init_asking.SetupQuestion("--flavor", "Which?"), (), None, choices)
    said = capsys.readouterr().err
    assert chosen == ("t3.huge", "m5.*"), "the number is that of the whole list"
    assert '"t3" is in 3 names' in said
    assert "7 t3.small" in re.sub(" +", " ", said)


def test_flavors_of_unknown_price_are_listed_the_smallest_first() -> None:
    def offer(flavor: str, cpus: int) -> CloudOffer:
        return CloudOffer("c", "a", flavor, "on-demand", Resources(cpus, 4096, 0, 0), None)

    found = init_cloud.flavor_choices([offer("a", 64), offer("z", 1), offer("k", 8)])
    assert [one.value for one in found] == ["z", "k", "a"]


@pytest.mark.parametrize(
    ("environ", "endpoint"),
    [
        ({}, "https://rc.example.org:8788/"),
        ({"AWS_PROFILE": "other"}, None),
        ({"AWS_DEFAULT_REGION": "eu-1"}, "https://rc.example.org:8788/"),
        ({"AWS_ACCESS_KEY_ID": "other"}, None),
    ],
)
def test_what_only_this_shell_knows_of_the_cloud_is_written_since_the_service_will_not_have_it(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], endpoint: str | None
) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    rc = {"EC2_ACCESS_KEY": "a", "EC2_SECRET_KEY": "s", "EC2_URL": "https://rc.example.org:8788/"}
    for name, value in {**rc, **environ}.items():
        monkeypatch.setenv(name, value)
    asker = init_asking.Asker(person=False)
    found = init_cloud.driver_settings(asker, "ec2", {})
    assert found.get("endpoint") == endpoint
    assert found.get("profile") == environ.get("AWS_PROFILE")
    assert found.get("region") == environ.get("AWS_DEFAULT_REGION")
    given = init_cloud.driver_settings(asker, "ec2", {"endpoint": "https://mine.example.org/"})
    assert given["endpoint"] == "https://mine.example.org/"


@pytest.mark.parametrize(("flags", "named"), [({}, "of-this-shell"), ({"os_cloud": "mine"}, "mine")])
def test_the_name_in_clouds_yaml_is_written_since_the_service_has_no_os_cloud(
    monkeypatch: pytest.MonkeyPatch, flags: Mapping[str, str], named: str
) -> None:
    monkeypatch.setenv("OS_CLOUD", "of-this-shell")
    found = init_cloud.driver_settings(init_asking.Asker(person=False), "openstack", flags)
    assert found == {"os_cloud": named}


class Terminal:
    """A person at a real terminal: types a line once a question is there."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "updraft.cli.main", "init", *arguments]
        env = {**os.environ, "HOME": str(folder), "COLUMNS": "80", "TERM": "dumb", "PATH": "/nowhere"}
        # What a shell runs in the background ignores SIGINT, and so would all that it starts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self.process = subprocess.Popen(
                command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env, close_fds=True
            )
        finally:
            signal.signal(signal.SIGINT, before)
        os.close(theirs)
        self.seen = ""

    def answer(self, question: str, typed: str) -> None:
        """Wait until `question` is asked, and type the answer."""
        self._until(lambda: question in self.seen, question)
        self.seen = self.seen.partition(question)[2]
        os.write(self.ours, typed.encode() + b"\n")

    def interrupt(self, question: str) -> None:
        """Press Ctrl-C at this question, again where it came before the reading began."""
        self._until(lambda: question in self.seen, question)
        for _ in range(10):
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(deadline(2))  # a second one while it ends would be its end
                return

    def end(self) -> int:
        """Wait for the end; the exit code."""
        self._until(lambda: False, "")
        code = self.process.wait(deadline(20))
        os.close(self.ours)
        return code

    def _until(self, condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
        end = time.monotonic() + deadline(seconds)
        while not condition():
            assert time.monotonic() < end, f"{what!r} never came; last seen: {self.seen!r}"
            if not select.select([self.ours], [], [], 0.5)[0]:
                continue
            try:
                self.seen += os.read(self.ours, 4096).decode()
            except OSError:  # the other end has gone
                assert not what, f"{what!r} never came; last seen: {self.seen!r}"
                return


def test_a_person_is_asked_everything(tmp_path: Path) -> None:
    images = 'images=["alma-9", "debian-12"]'
    terminal = Terminal(tmp_path, "--state-dir", "state", "--set", images)
    for question, typed in (
        ("What is the pool called?", "physics"),
        ("there already?", "n"),
        ("kind of cloud?", "fake"),
        ("image", "deb"),
        ("flavors", "1, l*"),
        ("key pair", ""),
        ("how many machines", "4"),
        ("how many cores", "x"),
        ("no number", ""),
        ("cost per hour", "1.5"),
    ):
        terminal.answer(question, typed)
    assert terminal.end() == 0, terminal.seen
    assert "updraft check" in terminal.seen
    settings = config.load(tmp_path / "updraft.toml")
    assert settings.pool.state_dir == tmp_path / "state"
    assert settings.classes["default"].image == "debian-12"
    assert settings.classes["default"].flavors == ("small", "l*")
    assert (settings.limits.machines, settings.limits.cost_per_hour) == (4, 1.5)
    assert settings.clouds["fake"].settings["key_name"] == "updraft-physics"
    assert (tmp_path / ".ssh" / "updraft-physics.pem").stat().st_mode & 0o777 == 0o600


def test_an_interrupted_dialogue_writes_nothing(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.answer("What is the pool called?", "physics")
    terminal.interrupt("there already?")
    assert terminal.end() == main.INTERRUPTED
    assert not (tmp_path / "updraft.toml").exists()
