"""Generated tests that look for as long as they are let: the pytest plugin behind `make hunt`.

Only tests that generate are taken, and all of them in turn, round after round until `--hunt` minutes are
over. Each turn generates new cases for `--share` seconds, so that a test whose cases are slow keeps no other
from its own. What is found is printed at once; a table at the end, also of a hunt that was ended by SIGTERM,
says what was tried.
"""

import functools
import math
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.errors import StopTest, UnsatisfiedAssumption

PATIENCE = (
    15 * 60.0
)  # of one turn, shrinking (five minutes at most) included: what takes longer hangs, and is a find


class ShareIsOver(BaseException):
    """Ends a turn between two cases. Hypothesis passes on what is no Exception."""


@dataclass
class Tried:
    """What became of one test, over all its turns."""

    turns: int = 0
    seconds: float = 0.0
    tried: Counter[str] = field(default_factory=Counter)
    finds: set[str] = field(default_factory=set)

    def row(self, name: str) -> str:
        cases, refused = self.tried["cases"], self.tried["refused"]
        found = f"{len(self.finds)} FOUND" if self.finds else ""
        return f"{self.turns:5} {cases:9} {refused:9} {self.seconds:8.0f}  {name}  {found}".rstrip()


class Share:
    """One turn of one test: counts its cases, and ends it when its time is over and nothing was found."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.tried: Counter[str] = Counter()

    def counted(self, test: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(test)
        def case(*args: object, **kwargs: object) -> None:
            try:
                test(*args, **kwargs)
            except (UnsatisfiedAssumption, StopTest):  # the second: it would draw more than a case may have
                self.tried["refused"] += 1
                if self._is_over():
                    raise ShareIsOver from None
                raise
            except BaseException:
                self.tried["failures"] += 1
                raise
            self.tried["cases"] += 1
            if self._is_over():
                raise ShareIsOver

        return case

    def _is_over(self) -> bool:
        """Asked after a case: one that ended before it drew what it drew the last time would seem flaky."""
        return time.monotonic() >= self.until and not self.tried["failures"]


class Hunt:
    """Runs in each worker, and in the process that has them: there it keeps the books."""

    def __init__(self, config: pytest.Config) -> None:
        minutes: float = config.getoption("hunt")
        self.share: float = config.getoption("share")
        self.seed: int = config.getoption("hunt_seed")
        self.seconds = minutes * 60
        worker = getattr(config, "workerinput", {})
        self.until: float = worker.get("until", time.time() + self.seconds)
        self.worker = worker.get("workerid", "alone")
        self.workers: int = config.getoption("numprocesses", None) or 1
        self.turns: Counter[str] = Counter()
        self.under_way: dict[str, float] = {}
        self.tried: defaultdict[str, Tried] = defaultdict(Tried)
        self.terminal: Any = config.pluginmanager.getplugin("terminalreporter")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["until"] = self.until

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """All that generate, in an order of the seed's, more often than the whole time can take."""
        generating = [item for item in items if hasattr(getattr(item, "obj", None), "hypothesis")]
        config.hook.pytest_deselected(items=[item for item in items if item not in generating])
        random.Random(self.seed).shuffle(generating)
        rounds = 3 * math.ceil(self.seconds * self.workers / (self.share * max(1, len(generating))))
        for item in generating:
            item.add_marker(pytest.mark.timeout(0))  # a busy machine is no find
        items[:] = generating * (rounds if len(generating) > 1 else 1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Nothing begins after the end."""
        return True if time.time() >= self.until else None

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        function: Any = getattr(pyfuncitem.obj, "__func__", pyfuncitem.obj)
        before = function._hypothesis_internal_use_settings, function.hypothesis.inner_test
        self.turns[pyfuncitem.nodeid] += 1
        turn = Share(time.monotonic() + min(self.share, self.until - time.time()))
        function.hypothesis.inner_test = turn.counted(before[1])
        function._hypothesis_internal_use_settings = looking(before[0])
        drawn = f"{self.seed} {self.worker} {pyfuncitem.nodeid} {self.turns[pyfuncitem.nodeid]}"
        function._hypothesis_internal_use_seed = random.Random(drawn).getrandbits(64)
        signal.signal(signal.SIGPROF, _computes_too_long)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            return (yield)
        except ShareIsOver:
            return True  # type: ignore[return-value]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            function._hypothesis_internal_use_settings, function.hypothesis.inner_test = before
            function._hypothesis_internal_use_seed = None
            pyfuncitem.user_properties[:] = [("hunt", dict(turn.tried))]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.under_way[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.under_way.pop(nodeid, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        about = self.tried[report.nodeid]
        if report.when == "call":
            about.turns += 1
            about.seconds += report.duration
            told: Any = dict(report.user_properties).get("hunt", {})
            about.tried.update(told)
        if not report.failed or self.terminal is None:
            return
        known = getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longreprtext)[:200]
        if known not in about.finds:  # the same find comes again at each turn, from what Hypothesis remembers
            about.finds.add(known)
            self.say("", f"FOUND after {self.spent():.0f} s: {report.nodeid}", report.longreprtext, "")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.terminal is None:
            return
        rows = sorted(self.tried.items(), key=lambda one: -one[1].seconds)
        self.say(
            "",
            f"tried in {self.spent():.0f} s, from SEED={self.seed}:",
            "turns     cases   refused  seconds  test",
        )
        self.say(*(about.row(name) for name, about in rows))
        now = time.monotonic()
        self.say(
            *(f"ended while under way for {now - since:.0f} s: {n}" for n, since in self.under_way.items())
        )
        cases = sum(about.tried["cases"] for _, about in rows)
        found = sum(len(about.finds) for _, about in rows)
        self.say(f"{cases} cases of {len(rows)} tests, {found} found")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if found else pytest.ExitCode.OK

    def spent(self) -> float:
        return time.time() - self.until + self.seconds

    def say(self, *lines: str) -> None:
        for line in lines:
            self.terminal.write_line(line, flush=True)


def looking(before: settings) -> settings:
    """New cases without an end: the share of time is what ends them."""
    return settings(
        before,
        max_examples=1_000_000,
        derandomize=False,
        database=settings.get_profile("default").database,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hunt")
    group.addoption("--hunt", type=float, default=60.0, help="minutes to look for")
    group.addoption("--share", type=float, default=15.0, help="seconds of one test's turn")
    group.addoption("--hunt-seed", type=int, default=0, help="what the cases are made from")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Hunt(config), "updraft-hunt")
    if not hasattr(config, "workerinput"):
        signal.signal(signal.SIGTERM, _ended)


def _ended(number: int, frame: FrameType | None) -> None:
    """What `timeout` sends ends the hunt as Ctrl-C does: with its table."""
    raise KeyboardInterrupt


def _computes_too_long(number: int, frame: FrameType | None) -> None:
    pytest.fail(f"one turn took a processor more than {PATIENCE:.0f} s")
