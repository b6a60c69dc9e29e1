"""Where a head gets updraft from: what is refused, what is known by itself, and that the lock says it all."""

import re
import tomllib
import zipfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from updraft import DISTRIBUTION, requirements
from updraft.bootstrap.head import source as sources
from updraft.bootstrap.head.source import WHEEL, checked_source, chosen_source, own_source
from updraft.errors import UsageError

ROOT = Path(__file__).parents[3]
HASH = "#sha256=" + "ab" * 32
GOOD = f"https://wheels.test/{WHEEL}{HASH}"


@pytest.mark.parametrize(
    "given",
    [
        GOOD,
        f"https://wheels.test:8443/a/b/{WHEEL}{HASH}",
        f"https://bucket.test/{WHEEL}?X-Amz-Signature=0a%2F1{HASH}",
        f"file:///opt/wheels/{WHEEL}{HASH}",
    ],
)
def test_a_wheel_with_its_hash_is_taken_as_it_is(given: str) -> None:
    assert chosen_source(given, "") == given


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("updraft", "no address"),
        ("updraft[ec2]==0.1.0", "no address"),
        ("updraft-htcondor==0.1.0", "no address"),
        ("updraft-htcondor==0.1.0" + HASH, "no address"),
        (f"updraft-htcondor@https://h/{WHEEL}{HASH}", "no address"),
        (f"http://wheels.test/{WHEEL}{HASH}", "no address"),
        (f"ftp://wheels.test/{WHEEL}{HASH}", "no address"),
        (f"git+https://wheels.test/{WHEEL}{HASH}", "no address"),
        (f"HTTPS://wheels.test/{WHEEL}{HASH}", "no address"),
        (f"https:///{WHEEL}{HASH}", "no address"),
        (f"https://me:word@wheels.test/{WHEEL}{HASH}", "no address"),
        (f"file://host/{WHEEL}{HASH}", "no address"),
        (f"/opt/wheels/{WHEEL}{HASH}", "no address"),
        (f"./{WHEEL}{HASH}", "no address"),
        ("--index-url=http://x", "no address"),
        (f"https://h/a b/{WHEEL}{HASH}", "no address"),
        (f"https://h/$(id)/{WHEEL}{HASH}", "no address"),
        (f"https://h/\n/{WHEEL}{HASH}", "no address"),
        (f"https://wheels.test/{WHEEL}", "has no hash"),
        (f"https://wheels.test/{WHEEL}#", "has no hash"),
        (f"https://wheels.test/{WHEEL}#sha256=", "has no hash"),
        (f"https://wheels.test/{WHEEL}#sha256=abcd", "has no hash"),
        (f"https://wheels.test/{WHEEL}#md5={'ab' * 16}", "has no hash"),
        (f"https://wheels.test/{WHEEL}{HASH}&egg=x", "has no hash"),
        (f"https://wheels.test/{WHEEL}{HASH}\n", "has no hash"),
        (f"https://wheels.test/updraft-0.1.0-py3-none-any.whl{HASH}", "not the wheel of this version"),
        (f"https://wheels.test/updraft_htcondor-9.9-py3-none-any.whl{HASH}", "not the wheel of this version"),
        (f"https://wheels.test/updraft_htcondor-0.1.0.tar.gz{HASH}", "not the wheel of this version"),
        (f"https://wheels.test/x.whl?{WHEEL}{HASH}", "not the wheel of this version"),
    ],
)
def test_what_could_be_anothers_is_refused(given: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        chosen_source(given, "")


def test_what_lets_a_reader_in_is_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        checked_source(f"https://bucket.test/{WHEEL}?signature=eyJsecret", "")
    assert "eyJsecret" not in str(caught.value)


@pytest.mark.parametrize(
    "index", ["https://mirror.test/simple", "https://me:word@m.test/s/", "file:///opt/wheels"]
)
def test_an_index_is_at_https_or_on_the_machines_own_disk(index: str) -> None:
    assert chosen_source(GOOD, index) == GOOD


@pytest.mark.parametrize(
    "index",
    ["http://mirror.test/simple", "mirror.test/simple", "/opt/wheels", "--pre", "$(id)", "https://h/a b"],
)
def test_any_other_index_is_refused(index: str) -> None:
    for source in (GOOD, "image"):
        with pytest.raises(UsageError, match=r"package index must .* https://"):
            chosen_source(source, index)


# ------------------------------------------------------------------------------- what it was installed from


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """`noted(text)`: what pip noted of this installation."""

    def note(text: str | None) -> None:
        class Distribution:
            def read_text(self, name: str) -> str | None:
                return text if name == "direct_url.json" else None

        monkeypatch.setattr(sources, "distribution", lambda _name: Distribution())

    return note


def test_the_wheel_that_this_updraft_came_from_is_the_heads_too(noted: Callable[[str], None]) -> None:
    noted(f'{{"url": "https://h/{WHEEL}", "archive_info": {{"hashes": {{"sha256": "{"ab" * 32}"}}}}}}')
    assert chosen_source("", "") == f"https://h/{WHEEL}{HASH}"


@pytest.mark.parametrize(
    "text",
    [
        None,
        '{"url": "file:///src/updraft", "dir_info": {"editable": true}}',
        f'{{"url": "file:///dist/{WHEEL}", "archive_info": {{"hashes": {{"sha256": "{"ab" * 32}"}}}}}}',
        f'{{"url": "https://h/{WHEEL}", "archive_info": {{}}}}',
    ],
)
def test_without_a_way_in_it_is_said_what_to_give(
    noted: Callable[[str | None], None], text: str | None
) -> None:
    noted(text)
    with pytest.raises(UsageError, match=r"--source 'https://.*#sha256=.*--source image"):
        chosen_source("", "")
    assert chosen_source("image", "") == ""
    assert chosen_source(GOOD, "") == GOOD


def test_an_updraft_that_was_never_installed_knows_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> Any:
        raise PackageNotFoundError

    monkeypatch.setattr(sources, "distribution", missing)
    assert own_source() == ""


# ------------------------------------------------------------------------------------------------- the lock

ENTRY = re.compile(r"^(?P<name>[a-z0-9.-]+)==(?P<version>\S+)(?: ; [^\\]+)? \\$")


def entries(text: str) -> dict[str, str]:
    """What the lock says of each version, as it is written there."""
    found = {}
    for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]:
        first, *hashes = entry.splitlines()
        assert ENTRY.match(first), first
        assert hashes
        for line in hashes:
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line), line
        found[first.split(" ")[0]] = entry
    return found


def test_what_is_shipped_is_what_was_tested() -> None:
    """Every version and hash of the lock is in that of development, which the tests ran with."""
    shipped = entries(requirements.locked())
    tested = entries((ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8"))

    def hashes(entry: str) -> list[str]:
        return re.findall(r"sha256:\w+", entry)

    assert {name for name in shipped if name not in tested} == set()
    assert [name for name, entry in shipped.items() if hashes(entry) != hashes(tested[name])] == []


def test_it_has_all_that_a_head_needs_whatever_its_clouds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    queue = [Requirement(one) for one in (*project["dependencies"], *extras["ec2"], *extras["openstack"])]
    wanted: set[str] = set()
    while queue:
        one = queue.pop()
        name = canonicalize_name(one.name)
        if name in wanted or (one.marker and not one.marker.evaluate({"extra": ",".join(one.extras)})):
            continue
        wanted.add(name)
        inner = [Requirement(line) for line in requires(name) or ()]
        queue += [needed for needed in inner if "extra" not in str(needed.marker or "")]
    assert {"boto3", "openstacksdk", "htcondor", "botocore"} <= wanted
    assert wanted - {name.partition("==")[0] for name in entries(requirements.locked())} == set()


def test_what_is_there_already_is_left_out() -> None:
    whole, less = entries(requirements.locked()), entries(requirements.locked(without=("htcondor", "numpy")))
    gone = {name.partition("==")[0] for name in whole.keys() - less.keys()}
    assert gone == {"htcondor", "numpy"}
    assert all(whole[name] == entry for name, entry in less.items())


def test_a_wheel_brings_the_lock_and_two_builds_are_the_same(tmp_path: Path) -> None:
    (first,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "a"), versions=["standard"])
    (second,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "b"), versions=["standard"])
    assert Path(first).name == WHEEL
    assert Path(first).read_bytes() == Path(second).read_bytes()
    with zipfile.ZipFile(first) as wheel:
        assert wheel.read("updraft/run.lock").decode() == requirements.locked()
        about = wheel.read(f"{WHEEL.rsplit('-', 3)[0]}.dist-info/METADATA").decode()
    assert f"Name: {DISTRIBUTION}\n" in about


def test_the_command_that_installs_the_rest_names_the_lock() -> None:
    path = requirements.install_command().rpartition(" -r ")[2]
    assert Path(path).read_text(encoding="utf-8") == requirements.locked()
