"""The reference can't drift from the code, and nothing that a person can meet lacks its entry."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from updraft.cli import reference
from updraft.cli.codes import error_classes, reason_codes
from updraft.cli.schemas import FORMS
from updraft.cli.verbs import SECTIONS, VERBS, installed, load_verb
from updraft.config.known import TABLES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.slow
def test_the_pages_are_what_the_code_says() -> None:
    pages = reference.pages()
    on_disk = {page.name: page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")}
    stale = [name for name in sorted({*pages, *on_disk}) if pages.get(name) != on_disk.get(name)]
    assert not stale, "run `make docs`"


def test_every_verb_has_an_entry_and_the_help_of_its_code() -> None:
    text = reference.commands_page()
    for name, (_, short) in VERBS.items():
        if not installed(name):
            continue
        assert f"## updraft {name}" in text
        assert short.endswith(".")
        assert load_verb(name).help, f"{name} says nothing of itself"


def test_the_list_of_verbs_has_each_of_them_once() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(VERBS)


def test_every_option_says_what_it_does() -> None:
    silent = [
        f"{path} {option.name}"
        for name in VERBS
        if installed(name)
        for path, command in _leaves(name, load_verb(name))
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]
    assert not silent


@pytest.mark.parametrize("name", [n for n in VERBS if installed(n) and isinstance(load_verb(n), click.Group)])
def test_lists_of_commands_say_whole_sentences(name: str) -> None:
    command = load_verb(name)
    listed = command.get_help(click.Context(command, info_name=name, terminal_width=80))
    assert "..." not in listed.partition("Commands:")[2]


def _leaves(path: str, command: click.Command) -> list[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        alone = [(path, command)] if command.invoke_without_command else []
        inner = [leaf for name, one in command.commands.items() for leaf in _leaves(f"{path} {name}", one)]
        return [*alone, *inner]
    return [(path, command)]


def test_every_setting_says_what_it_means() -> None:
    silent = [
        f"{table}.{key}"
        for table, model in TABLES
        for key, field in model.model_fields.items()
        if not field.description
    ]
    assert not silent


@pytest.mark.slow
def test_every_error_and_reason_has_an_entry() -> None:
    errors = reference.errors_page()
    for error in error_classes():
        assert f"`{error.__name__}`" in errors
        assert error.__name__ in errors.split("```")[1], "draw it in the tree of errors.py"
    codes = reason_codes()
    assert {"demand", "no-capacity"} <= set(codes)
    assert all(re.fullmatch(r"[a-z…][a-z0-9…-]*", code) for code in codes), sorted(codes)


def test_every_verb_that_shows_has_its_form_described() -> None:
    shown = {
        path
        for name in VERBS
        if installed(name) and name not in ("demo", "local")
        for path, command in _leaves(name, load_verb(name))
        if any(option.name == "as_json" for option in command.params)
    }
    described = {verb.removesuffix(" JOB").removesuffix(" MACHINE") for verb in FORMS}
    assert shown == described


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"], ids=lambda page: page.name
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_dependencies_page_names_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (DOCS / "explanation" / "dependencies.md").read_text(encoding="utf-8")
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = [re.split(r"[<>=;]", one)[0].strip() for one in wanted]
    assert len(names) > 15
    assert not [name for name in names if f"`{name}`" not in text]


def test_the_tests_that_pages_name_are_there() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text()
        for file, _, word in re.findall(r"(tests/[\w/]+\.py)( -k (\w+))?", text):
            assert (ROOT / file).exists(), f"{page.name}: {file}"
            assert word in (ROOT / file).read_text(), f"{page.name}: {file} -k {word}"


def test_a_reasons_code_is_that_of_its_own_module(tmp_path: Path) -> None:
    """`USER` of the demo is a user's name, and was listed as the code of another module's `USER`."""
    package = tmp_path / "some"
    (package / "room").mkdir(parents=True)
    for name, text in {
        "other.py": 'USER = "alice"\nMINE = "imported"\n',
        "room/caps.py": 'USER = "user-limit"\nReason(USER, "so it is")\n',
        "room/more.py": 'from some.other import MINE as HERS\nReason(HERS, "and so it is")\n',
    }.items():
        (package / name).write_text(text)
    assert set(reason_codes(package)) >= {"user-limit", "imported"}
    assert "alice" not in reason_codes(package)


def test_the_classes_that_the_glossary_names_are_there() -> None:
    text = (DOCS / "explanation" / "glossary.md").read_text()
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| ")]
    old = text.partition("## Old words")[2]
    named = {
        name
        for word, meaning in rows
        for name in re.findall(r"`([A-Z]\w+)`", meaning if word in old else word + meaning)
    }
    sources = "\n".join(path.read_text() for path in (ROOT / "src" / "updraft").rglob("*.py"))
    assert {"MachineId", "Variant", "Disposition", "LeaderElection"} <= named
    assert named - set(re.findall(r"^class (\w+)", sources, re.MULTILINE)) == set()
