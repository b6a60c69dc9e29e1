"""What a failed test leaves: a folder with what one needs to understand it.

`build/failures/<test>` in the checkout, or below the folder that UPDRAFT_TEST_REMAINS names: the ledger, the
daemon's log, HTCondor's logs of all machines that are still there, consoles, the cloud's log, and what
commands on the head print. Its path ends the failed test's report, and is said again when the run is over.

Something that is up and could be asked says so by `watched`; a test's own `tmp_path` is taken where there is
a ledger or a cloud's log in it.
"""

import os
import re
import shutil
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

ROOT = "UPDRAFT_TEST_REMAINS"
ROOM = 20_000_000  # bytes of one folder
LARGEST = 4_000_000  # of one log: its end
KEPT = 20  # folders
LONGEST = 120  # characters of a folder's name
SAID = 2_000  # characters of each text that the report shows
LEDGER = "ledger."  # how its files begin
TELLING = (f"{LEDGER}*", "cloud.log")
SECRET = re.compile(
    r"token|password|secret|credential|\.key$|\.pem$|/\."
)  # hidden files have HTCondor's addresses


class Remains:
    """One folder, which never grows beyond `room` bytes; what was left out is listed in `left-out`."""

    def __init__(self, path: Path, room: int = ROOM) -> None:
        self.path = path
        self.said = ""
        self._room = room

    def text(self, name: str, text: str) -> None:
        """Keep a text, and show its end in the report."""
        self._write(name, text.encode(errors="replace"))
        self.said += f"\n======== {name}\n{text[-SAID:]}"

    def file(self, name: str, source: Path) -> None:
        """Keep a file, or the end of a log that is too long; one that can't be read is left out."""
        try:
            with source.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - LARGEST) if not source.name.startswith(LEDGER) else 0)
                self._write(name, file.read(size))
        except OSError as error:
            self._leave_out(name, str(error))

    def folder(self, name: str, source: Path, pattern: str = "*") -> None:
        """Keep the files below a folder whose names match and tell of no secret; the smallest come first."""
        found = [path for path in source.rglob(pattern) if path.is_file() and not path.is_symlink()]
        for path in sorted(found, key=lambda path: path.stat().st_size):
            below = path.relative_to(source)
            if not SECRET.search(f"/{below}".lower()):
                self.file(f"{name}/{below}", path)

    def _write(self, name: str, content: bytes) -> None:
        if len(content) > self._room:
            self._leave_out(name, f"{len(content)} bytes")
            return
        self._room -= len(content)
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def _leave_out(self, name: str, why: str) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "left-out").open("a") as file:
            file.write(f"{name}: {why}\n")


Tell = Callable[[Remains], None]


class _Now:
    """The test that runs, what of it has failed, and the folder that it leaves where there is one."""

    watched: ClassVar[list[Tell]] = []
    root = Path()
    test = ""
    failed = False
    remains: Remains | None = None


@contextmanager
def watched(tell: Tell) -> Iterator[None]:
    """Whatever test fails meanwhile, `tell` writes into its folder before anything is taken down."""
    _Now.watched.append(tell)
    try:
        yield
    except pytest.skip.Exception:
        raise
    except BaseException:
        leave(tell)  # before pytest hears of it, what is around this has been taken down
        raise
    finally:
        _Now.watched.remove(tell)


def leave(tell: Tell) -> None:
    """Have `tell` write into the folder of the test that runs; the folder goes again if that doesn't fail.

    Where no test runs, as in a benchmark that takes a rig, nothing is left.
    """
    if not _Now.test:
        return
    if _Now.remains is None:
        path = _Now.root / folder_name(_Now.test)
        shutil.rmtree(path, ignore_errors=True)
        _Now.remains = Remains(path)
    try:
        tell(_Now.remains)
    except Exception:
        _Now.remains.text("not-everything", traceback.format_exc())


def folder_name(test: str) -> str:
    """A test's folder: its id as far as a name may hold it, and different for each test."""
    plain = re.sub(r"[^\w.-]+", "-", test.removeprefix("tests/")).strip("-")
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}-{zlib.crc32(test.encode()):08x}"


def forget_old(root: Path, kept: int = KEPT) -> None:
    """Only so many folders stay, the newest."""
    with suppress(OSError):  # another worker does the same
        found = sorted(root.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in found[kept:]:
            shutil.rmtree(path, ignore_errors=True)


def _take_own(item: pytest.Item) -> None:
    """The test's own folder, where a ledger or a cloud's log is in it."""
    own = getattr(item, "funcargs", {}).get("tmp_path")
    if isinstance(own, Path) and any(any(own.rglob(name)) for name in TELLING):
        leave(lambda remains: remains.folder("tmp_path", own))


# --------------------------------------------------------------------------------------------- pytest's hooks


def pytest_configure(config: pytest.Config) -> None:
    _Now.root = Path(os.environ.get(ROOT) or config.rootpath / "build/failures")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(LastLines(config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _Now.test, _Now.failed, _Now.remains = item.nodeid, False, None
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: Any = yield
    if report.failed:
        _Now.failed = True
        for tell in tuple(_Now.watched):
            leave(tell)
        _take_own(item)
    remains = _Now.remains
    if remains is None:
        return report
    printed = any("teardown" in name for name, _ in report.sections)
    if _Now.failed and (report.failed or printed):
        # What a teardown has printed comes after what the failed call has: the path is the last once more.
        report.remains = str(remains.path)
        report.sections.append((f"what the test left, at {report.when}", f"{remains.said}\n{remains.path}"))
        remains.said = ""
        forget_old(_Now.root)
    elif report.when == "teardown" and not _Now.failed:
        shutil.rmtree(remains.path, ignore_errors=True)
    return report


class LastLines:
    """Names the folders again when the run is over; under xdist it is told of every worker's tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folders: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if hasattr(report, "remains"):
            self._folders[report.remains] = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        yield
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        for folder in self._folders if reporter else ():
            reporter.write_line(f"what a failed test left: {folder}")
