"""What comes from outside reaches no terminal as it came: stdout, stderr, tables, JSON and the log."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

import click
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from updraft.app import serving
from updraft.app.terminal import plain_streams, printable
from updraft.cli import main
from updraft.cli.output import Column, console, json_text, table

WIPES = "\x1b[2J\x1b]0;owned\x07\x9b31m‮evil\x7f"


@given(st.text())
def test_nothing_but_letters_and_ends_of_lines_is_left(text: str) -> None:
    shown = printable(text)
    assert shown.replace("\n", "").replace("\t", "").isprintable()
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_what_is_said_is_made_printable() -> None:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), plain_streams():
        sys.stdout.write(f"a {WIPES}\n")
        click.echo(f"b {WIPES}", err=True)
        with plain_streams():  # as a call within a call
            click.echo("c\x1b")
    assert out.getvalue() == "a \\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\u202eevil\\x7f\nc\\x1b\n"
    assert "\x1b" not in err.getvalue()
    assert sys.stdout is not out


def test_an_error_that_quotes_somebody_is_made_printable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["--config", f"/tmp/{WIPES}", "status"]) == 2
    said = capsys.readouterr().err
    assert "there is no such file" in said
    assert said.replace("\n", "").isprintable()


def test_a_table_has_no_colours_but_its_own() -> None:
    out = io.StringIO()
    with redirect_stdout(out), plain_streams():
        console().print(table([Column("user"), Column("why", wide=True)], [["eve\x1b[2J", "\x1b[31mred"]]))
        console().print("and \x1b[2J", markup=False)
    assert "\x1b" not in out.getvalue()
    assert "eve\\x1b[2J" in out.getvalue()


def test_a_long_name_takes_no_other_columns_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    columns = [Column("user"), *(Column(name, right=True) for name in ("cores", "share", "waiting"))]
    name = "group_atlas.production.reprocessing.2026.november.campaign.number-17@a.long.domain.example"
    with redirect_stdout(out):
        console().print(table(columns, [[name, "134/1000", "50%", "12345"], ["bob", "1", "2%", "0"]]))
    shown = out.getvalue()
    assert all(text in shown for text in ("134/1000", "50%", "12345"))
    lines = [line.split("  ")[0].strip() for line in shown.splitlines()[2:]]
    assert name in "".join(line.split(" ")[0] for line in lines), "it is folded, not cut"
    assert max(map(len, shown.splitlines())) <= 80


def test_words_are_broken_where_a_reader_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not `on-dema` and `nd`, as in a table of offers of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    titles = ("cloud", "flavor", "cpus", "memory", "price/h", "zone", "market", "left")
    columns = [Column(name, right=name in ("cpus", "memory", "price/h", "left")) for name in titles]
    texts = ("openstack-campus", "cloudveneto.xlarge-memory", "16", "128 GiB", "0.4321", "eu-central-1a")
    with redirect_stdout(out):
        console().print(table(columns, [[*texts, "on-demand", "1234"]]))
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert {"openstack-", "campus", "cloudveneto.", "memory", "on-demand"} <= set(out.getvalue().split())


@given(st.text())
def test_json_says_the_same_and_a_terminal_obeys_none_of_it(text: str) -> None:
    said = json_text(json.dumps({"a": text}, indent=2, ensure_ascii=False))
    assert json.loads(said) == {"a": text}
    assert said.replace("\n", "").isprintable()


def test_the_log_quotes_nobody_as_they_came() -> None:
    err = io.StringIO()
    with redirect_stderr(err), plain_streams():
        serving.start_log("text")
        try:
            structlog.get_logger("updraft").warning(f"held: {WIPES}", owner=WIPES)
        finally:
            structlog.reset_defaults()
    assert "held: " in err.getvalue()
    assert err.getvalue().replace("\n", "").isprintable()
