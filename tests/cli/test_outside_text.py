"""What others have written, in every text that the verbs draw: none of it is markup, or an order.

No column of a table loses its room to it either. The streams themselves are tested in `test_terminal.py`.
"""

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.text import Text

import updraft
from tests.cli.test_verbs import SETTINGS, ledger_of, run, save_cycle
from tests.rigs.pools.realpool import at_a_terminal
from tests.waiting import until
from updraft.app.terminal import plain_streams, printable
from updraft.checks import Finding, State
from updraft.cli.annexes import rows as annex_rows
from updraft.cli.demo import show
from updraft.cli.drawing import LEAST, column_widths
from updraft.cli.heads import launch as headlaunch
from updraft.cli.images import catalogue, image
from updraft.cli.operating import cloud
from updraft.cli.output import Column, console, table, waiting
from updraft.cli.running import look
from updraft.cli.setup import check, importing
from updraft.cli.tokens import tokens
from updraft.cli.watching import explain, status, tallies
from updraft.cli.watching.explain import ExplainedGroup, ExplainedJobs, SilentSchedd
from updraft.cli.watching.misses import OfferVerdict
from updraft.condor.support.lookup import JobSeen
from updraft.core.model import (
    Annex,
    BudgetPeriod,
    BudgetScope,
    Cooldown,
    MachineRecord,
    Phase,
    Reason,
    Resources,
)
from updraft.core.reasons import HeldBack
from updraft.documents import plain
from updraft.documents.cycle import BudgetOver, BudgetRow, DaemonState, Room, Tallies
from updraft.importers.output.report import Fate, Report, Row
from updraft.ledger import Ledger, RequestKind, annexes
from updraft.ledger.reader import Request
from updraft.watching.documents import MachineCounts, Status

Capture = pytest.CaptureFixture[str]
OTHERS = {
    "markup": "[/x]",
    "style": "[bold]x[/bold]",
    "link": "[link=http://evil]x[/link]",
    "emoji": ":smile:",
    "orders": "a\x1b[2J\x1b]0;owned\x07\x1b]8;;http://evil\x1b\\b\x9b5n\x08\r\x0b\x7f",
    "colour": "\x1b[5;41mred",
    "direction": "a\u202egnp\u2066b\u200f",
    "unseen": "a\u200bb\U000e0041c\u2028d",
    "lines": "one\ntwo",
    "wide": "名" * 60,
    "long": "w" * 200,
}
OWN_ORDERS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[ABCDGK])|\r")
texts = pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
KEPT = {"state", "kind", "what", "scope", "code"}


def filled(document: Any, text: str) -> Any:
    """The document with this in place of every text that doesn't choose the way it is drawn."""
    if isinstance(document, dict):
        return {key: one if key in KEPT else filled(one, text) for key, one in document.items()}
    if isinstance(document, list):
        return [filled(one, text) for one in document]
    return text if isinstance(document, str) else document


def obeyed(said: str) -> list[str]:
    """What a terminal would obey of it, or show as what it isn't, beyond colours and movements of our own."""
    assert "\x1b[5;41m" not in said
    return [letter for letter in OWN_ORDERS.sub("", said) if not letter.isprintable() and letter != "\n"]


def seen(said: str) -> str:
    """The letters that a person sees, without the lines that they are folded into."""
    return "".join(OWN_ORDERS.sub("", said).split())


def cycle(at: float) -> dict[str, Any]:
    """All that a look may keep, each part once, and every text a plain one."""
    reason = {"code": "late", "text": "why"}
    return {
        "standing": reason,
        "sources": {"cloud here": {"state": "unknown", "since": at - 90, "error": reason}},
        "jobs": {"idle": 38, "running": 12},
        "groups": [
            {"key": "g1", "owner": "alice", "first_id": "4.0", "idle": 1234567, "joined": 123456, "coming": 8,
             "new": 4, "unmet": 16, "held_back": [reason], "refused": [reason]},
        ],
        "machines": [
            {"machine": "i-1", "cloud": "here", "phase": "joined", "reason": reason, "deadline": at + 60}
        ],
        "annexes": [{"name": "a", "state": "up", "machines": 1, "cores": 8, "joined": 1, "busy": 1,
             "coming": 2, "reason": reason}],
        "cooldowns": [
            {"scope": "offer", "key": "here/a", "until": at + 60, "failures": 2, "probe": False,
             "reason": reason}
        ],
        "warnings": [reason],
        "actions": [{"what": "launch", "text": "launching 4", "reason": reason}],
        "clouds": [
            {"name": "here", "state": "resting", "priority": 10, "disabled": {"who": "bob", "text": "why"},
             "leaving": False, "silent": {"since": at - 90}, "rest": {"until": at + 60, "reason": reason},
             "machines": 1234, "cores": 1235, "memory": 12345678, "cost_per_hour": 1.5, "limits":
             {"machines": 2000, "cores": None, "memory": 23456789, "cost_per_hour": None},
             "quota_left": {"machines": 123, "cores": 4567}, "foreign": {"machines": 1, "cores": 2},
             "last_error": {"code": "late", "text": "why", "at": at}}
        ],
        "classes": [
            {"name": "default", "machines": 12345, "max": 20000, "min": 3, "cores": 123456, "max_cores": None,
             "cost_per_hour": 12.5, "unknown_prices": 1, "waiting": 7654321, "phases": {"joined": 12345}}
        ],
        "users": [
            {"user": "alice", "cores": 1236, "max_cores": 2000, "part": 0.51, "share": 0.52, "machines": 321,
             "max_machines": None, "waiting": 7654321}
        ],
    }  # fmt: skip


def all_parts(text: str) -> dict[str, Any]:
    return {**filled(cycle(time.time()), text), "machines": []}


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at a terminal, whatever it is written to."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "updraft.toml").write_text(SETTINGS)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.delenv("UPDRAFT_DEBUG", raising=False)
    return tmp_path


def fill(site: Path, text: str) -> None:
    """A ledger whose every text is this one, where somebody else may write it."""
    at = time.time()
    with ledger_of(site) as ledger:
        reason = Reason("odd", text)
        for number, ended in enumerate((None, at - 30)):
            ledger.remember([
                MachineRecord(
                    f"i-{number}{text}", text, text, text, text, text, at - 100, zone=text, image=text,
                    price=0.05,
                    ended_at=ended, end=None if ended is None else reason,
                )
            ])  # fmt: skip
        ledger.event(at, "ended", f"i-1{text}", reason)
        ledger.keep_console(text, f"i-1{text}", text, at)
        ledger.request(at, text, RequestKind.TERMINATE, text)
        annexes.create(ledger, Annex(text, text, text, 5, 0, at + 3600, 300.0), text)
        save_cycle(ledger, at, **filled(cycle(at), text))
        _by_another(ledger, text, at)


def _by_another(ledger: Ledger, text: str, at: float) -> None:
    ledger.note("controller", {"host": text, "started": at, "last_cycle": at, "acting": False}, at)


VERBS: Sequence[Sequence[str]] = (
    ("status",),
    ("status", "--clouds", "--classes", "--users"),
    ("machines", "--all"),
    ("events",),
    ("explain", "i-1"),
    ("annex", "list"),
    ("annex", "status"),
    ("cloud", "list"),
    ("tokens", "list"),
)


@texts
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_no_verb_that_reads_obeys_what_others_wrote(
    empty: Path, colours: None, capsys: Capture, verb: Sequence[str], text: str
) -> None:
    fill(empty, text)
    code, out, err = run(capsys, *verb)
    assert (code, err) == (0, "")
    assert obeyed(out) == []
    if verb != ("cloud", "list") and verb != ("tokens", "list") and text.isprintable():
        assert seen(text)[:8] in seen(out), "it is shown as it stands"


@pytest.mark.parametrize("kind", ["markup", "style", "link", "emoji", "long"])
def test_a_warning_is_shown_as_it_stands(empty: Path, colours: None, capsys: Capture, kind: str) -> None:
    fill(empty, OTHERS[kind])
    assert seen(f"warning: {OTHERS[kind]}") in seen(run(capsys, "status")[1])


@texts
@pytest.mark.parametrize("verb", [("status",), ("machines",), ("events",), ("explain", "i-1")], ids=" ".join)
def test_json_says_what_others_wrote(empty: Path, capsys: Capture, verb: Sequence[str], text: str) -> None:
    fill(empty, text)
    code, out, _ = run(capsys, *verb, "--json")
    assert code == 0
    assert obeyed(out) == []
    said = [json.loads(line) for line in out.splitlines()] if verb == ("events",) else json.loads(out)
    found = {
        "status": lambda: said["warnings"][0]["text"],
        "machines": lambda: said["machines"][0]["cloud"],
        "events": lambda: next(one["text"] for one in said if one["code"] == "odd"),
        "explain": lambda: said["machine"]["reason"]["text"],
    }[verb[0]]()
    assert found == text


def _status(text: str) -> None:
    parts = all_parts(text)
    own = ("jobs", "sources", "groups", "actions", "cooldowns", "warnings")
    budget = BudgetRow(BudgetScope.CLASS, text, text, BudgetPeriod.DAY, 9.0, 9.0, 0.5, True, 0.0, 0.0, 3)
    for names in ((), ("clouds", "classes", "users")):
        document = Status(
            pool=text,
            daemon=DaemonState(True, False, {"code": "x", "text": text}, text, None, None, time.time(), 2.0),
            machines=MachineCounts(total=3, phases={text: 3}, cost_per_hour=1.5, unknown_prices=1),
            tallies=Tallies(parts["clouds"], parts["classes"], [plain(budget)], parts["users"]),
            annexes=[],
            requests=[Request(1, time.time(), text, text, text)],  # type: ignore[arg-type]
            **{name: parts[name] for name in own},
        )
        for part in status.picture(document, names):
            console().print(part)


def _check(text: str) -> None:
    console().print(check.picture([Finding(text, text, state, text, text) for state in State], console()))


def _import(text: str) -> None:
    rows = (Row(text, text, text, fate, text) for fate in Fate)
    importing._show(Report(tuple(rows)))


def _plan(text: str) -> None:
    look.show_plan({**all_parts(text), "at": time.time()})


def _explain(text: str) -> None:
    reason = Reason(text, text)
    offer = OfferVerdict(text, 0.0512, 12345, [reason], [Cooldown("offer", text, 0.0, 2, False, reason)])
    room = Room(1, 0, 0, 0, 1, (HeldBack(text, text, text),))
    offers = [offer, replace(offer, price=None)]
    group = ExplainedGroup(
        "g", text, Resources(1, 2048, 0, 0), True, room, [BudgetOver(text, BudgetPeriod.DAY, 0.0)], offers
    )
    jobs = [JobSeen(text, text, text, state, 0.0, text, text) for state in ("held", "running", "idle")]
    document = ExplainedJobs(jobs, [group], [SilentSchedd(text, text)], [reason])
    for part in explain.job_story(document, time.time()):
        console().print(part)


def _demo(text: str) -> None:
    scene = show.Scene(text, 3.0, 5, 6, 7, {Phase.JOINED: 3}, (show.ShownDecision(1.0, text),), text)
    for live in (True, False):
        with show.Stage(console(), live=live) as stage:
            stage.show(scene)
    console().print(show.closing_table(show.Closing(3, 2, 1, 5.0, 4.0, 1.0, 0, 0), text))


PICTURES: Sequence[Callable[[str], None]] = (_status, _check, _import, _plan, _explain, _demo)


@texts
@pytest.mark.parametrize("draw", PICTURES, ids=lambda draw: draw.__name__)
def test_no_picture_obeys_what_others_wrote(
    colours: None, capsys: Capture, draw: Callable[[str], None], text: str
) -> None:
    draw(text)
    said = "".join(capsys.readouterr())
    assert "\x1b[" in said, "our own colours stay"
    assert obeyed(said) == []
    if "\n" not in text:
        assert seen(printable(text))[:8] in seen(said), "it is shown as it stands"


@given(st.text(min_size=1), st.sampled_from(PICTURES))
def test_no_picture_obeys_any_text(text: str, draw: Callable[[str], None]) -> None:
    said = io.StringIO()
    with redirect_stdout(said), pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORCE_COLOR", "1")
        patch.setattr(sys, "stderr", said)
        draw(text)
    assert obeyed(said.getvalue()) == []


def test_everything_is_drawn_on_one_console() -> None:
    package = Path(updraft.__file__).parent
    sources = {str(path.relative_to(package)): path.read_text() for path in package.rglob("*.py")}
    of_rich = {
        name for name, text in sources.items() if re.search(r"^\s*(from|import) rich\b", text, re.MULTILINE)
    }
    makers = {name for name in of_rich if re.search(r"\b(Console|get_console|print_json)\(", sources[name])}
    assert "cli/demo/show.py" in of_rich
    assert makers <= {"cli/drawing.py"}, "others take updraft.cli.output.console"


def test_a_text_made_printable_keeps_its_styles_where_they_were(colours: None, capsys: Capture) -> None:
    console().print(Text.assemble(("a\x1b", "bold"), "b\u202e", ("c", "bold")))
    assert capsys.readouterr().out == "\x1b[1ma\\x1b\x1b[0mb\\u202e\x1b[1mc\x1b[0m\n"


# --------------------------------------------------------------------------------------- at a real terminal


class Terminal:
    """A terminal of 80 columns with a program at it."""

    def __init__(self, *command: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 400, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, preexec_fn=at_a_terminal
        )
        os.close(theirs)
        self.said = b""

    def read(self) -> bool:
        """Take what there is; False where nothing will come any more."""
        while select.select([self._ours], [], [], 0.1)[0]:
            try:
                self.said += os.read(self._ours, 65536)
            except OSError:  # so Linux says that the other side is closed
                return False
        return True

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["markup", "orders", "colour", "direction", "long"])
def test_watch_obeys_nothing_that_others_wrote(empty: Path, kind: str) -> None:
    fill(empty, OTHERS[kind])
    terminal = Terminal(sys.executable, "-m", "updraft.cli.main", "status", "--watch")

    def drawn() -> bool:
        terminal.read()
        return terminal.said.count(b"warning:") >= 2 or terminal.process.poll() is not None

    try:
        until(drawn, 20, "the picture is drawn a second time")
        terminal.process.send_signal(signal.SIGINT)
        until(lambda: not terminal.read(), 20, "Ctrl-C ends it")
    finally:
        terminal.close()
    said = terminal.said.decode()
    assert terminal.process.returncode == 130, said
    assert "\x1b[1m" in said, "our own colours stay"
    assert obeyed(said) == []


def test_what_is_written_while_something_is_waited_for_keeps_no_colours(
    colours: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AtATerminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    said = AtATerminal()
    monkeypatch.setattr(sys, "stderr", said)
    with plain_streams(), waiting("asking [/x] \x1b[2J"):
        click.echo("\x1b[5;41mred \x1b]8;;http://evil\x1b\\ \x1b[2J", err=True)
    assert obeyed(said.getvalue()) == []
    assert "http://evil" not in said.getvalue().replace("\\x1b]8;;http://evil", "")
    assert "asking [/x] \\x1b[2J" in said.getvalue()
    assert "\\x1b[5;41mred" in said.getvalue()


# ------------------------------------------------------------------------------------------------- tables


def _made(columns: Sequence[tuple[Column, bool, Any]]) -> list[Column]:
    return [column for column, always, _ in columns if always]


TABLES = {
    "machines": _made(status.MACHINE_COLUMNS),
    "clouds": _made(tallies.CLOUD_COLUMNS),
    "cloud list": _made(cloud.COLUMNS),
    "annexes": _made(annex_rows.COLUMNS),
    "tokens": _made(tokens.COLUMNS),
    "images": _made(catalogue._IMAGE_COLUMNS),
    "offers": _made(catalogue._OFFER_COLUMNS),
    "image list": list(image._COLUMNS),
    "heads": _made(headlaunch._COLUMNS),
    "all": [Column("one"), Column("two", wide=True), *(Column(f"n{n}", right=True) for n in range(3))],
}


def drawn(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    said = io.StringIO()
    with redirect_stdout(said):
        console().print(table(columns, rows))
    return said.getvalue().splitlines()


def _ruled(line: str) -> bool:
    return set(line.strip()) == {"─"}


@pytest.mark.parametrize("length", [35, 200])
@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES)
def test_long_values_in_every_column_leave_each_its_room(
    monkeypatch: pytest.MonkeyPatch, columns: Sequence[Column], length: int
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    numbers = {at: f"{at}234/2000" for at, column in enumerate(columns) if column.right}
    longs = {at: chr(ord("A") + at) * length for at, column in enumerate(columns) if not column.right}
    lines = drawn(columns, [[numbers.get(at) or longs[at] for at in range(len(columns))]])
    assert max(map(len, lines)) <= 80
    first, *more = (line.split() for line in lines[lines.index(next(filter(_ruled, lines))) + 1 :])
    assert set(numbers.values()) <= set(first), "numbers are whole, in the first line"
    for long in longs.values():
        parts = [part for line in (first, *more) for part in line if part[0] == long[0]]
        assert "".join(parts) == long, "folded, not cut"
        assert len(parts[0]) >= LEAST


@pytest.mark.parametrize(
    ("draw", "numbers"),
    [
        (_status, ("1234567", "1234/2000", "1235", "123m+4567c", "7654321", "1236/2000", "51%", "52%")),
        (_plan, ("1234567", "123456", "16")),
        (_explain, ("0.0512", "12345")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["long", "wide"])
def test_numbers_are_whole_beside_long_texts(
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    draw: Callable[[str], None],
    numbers: Sequence[str],
    kind: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    draw(OTHERS[kind])
    out = capsys.readouterr().out
    assert set(numbers) <= set(out.split())


def test_a_text_in_a_column_of_numbers_takes_nobodys_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    columns = [Column("name"), Column("a", right=True), Column("b", right=True), Column("why", wide=True)]
    lines = drawn(columns, [["alice", "9" * 200, "12345", "because of it"], ["bob", "7", "1", "so"]])
    words = " ".join(lines).split()
    assert {"alice", "12345", "because", "of", "it", "bob", "so"} <= set(words)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("columns", [80, 120])
def test_a_long_name_among_findings_takes_nobodys_room(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    long = OTHERS["long"]
    found = [
        Finding(f"cloud {long}", long, State.PROBLEM, "it does not answer", "look at it"),
        Finding("pool", "collector", State.OK, "it answers"),
    ]
    console().print(check.picture(found, console()))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= columns
    assert said.count("w") == 2 * len(long) + 2, "folded, not cut"
    for text in ("problem", "it does not answer", "→ look at it", "collector", "ok", "it answers"):
        assert text in said


def test_names_stay_whole_while_sentences_can_be_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "7e9f5ed8-2c1b-4b6e-9a53-1b0e4d1c6f00"
    lines = drawn(
        [Column("id"), Column("flavor"), Column("why", wide=True)], [[name, "small", "because " * 20]]
    )
    assert name in " ".join(lines).split()


kinds = st.sampled_from([(False, False), (True, False), (False, True), (True, True)])


@given(
    st.lists(st.tuples(kinds, st.integers(0, 300), st.integers(0, 30)), min_size=1, max_size=10),
    st.integers(-20, 150),
)
@example([((False, False), 0, 0), ((True, False), 0, 0)], 1)
def test_no_column_is_without_room(drawn: list[tuple[tuple[bool, bool], int, int]], room: int) -> None:
    columns = [Column("t" * title, right=right, wide=wide) for (right, wide), _, title in drawn]
    widths = column_widths(columns, [["x" * longest] for _, longest, _ in drawn], room)
    assert all(width >= 1 for width in widths)
    assert sum(widths) <= max(room, len(columns))
    folded = [at for at, width in enumerate(widths) if width < drawn[at][1]]
    if any(columns[at].right and drawn[at][1] <= 20 for at in folded):
        names = [width for column, width in zip(columns, widths, strict=True) if not column.right]
        assert all(width <= LEAST for width in names), "numbers are folded last"
