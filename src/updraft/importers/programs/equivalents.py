"""What users of Cloud Scheduler and csv2 type, and what it is here: tables for the reference.

The rows are data (files/equivalents.toml, files/meanings.toml); a test holds whatever they name to the code.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from updraft.importers.output.report import MEANINGS, Fate
from updraft.importers.output.rules import Program, Rule

COLUMNS = ["theirs", "ours", "what is different, or why not"]


@dataclass(frozen=True, slots=True)
class Equivalents:
    """One table: theirs, ours and a sentence in each row; `intro` stands above it, and may be empty."""

    title: str
    rows: tuple[tuple[str, str, str], ...]
    intro: str = ""


def equivalents() -> list[Equivalents]:
    """The tables of verbs, options and job attributes, in their order."""
    text = (resources.files("updraft.importers") / "files" / "equivalents.toml").read_text(encoding="utf-8")
    return [
        Equivalents(
            one["title"],
            tuple((theirs, ours, why) for theirs, ours, why in one["rows"]),
            one.get("intro", ""),
        )
        for one in tomllib.loads(text)["tables"]
    ]


@dataclass(frozen=True, slots=True)
class Meanings:
    """What values of a program meant: key, releases, meaning, and where its source says so, in each row."""

    name: str
    rows: tuple[tuple[str, str, str, str], ...]


def meanings() -> list[Meanings]:
    """A table for each program, from files/meanings.toml."""
    text = (resources.files("updraft.importers") / "files" / "meanings.toml").read_text(encoding="utf-8")
    return [
        Meanings(
            one["name"], tuple((key, releases, told, where) for key, releases, told, where in one["rows"])
        )
        for one in tomllib.loads(text)["programs"]
    ]


def configuration(program: Program) -> Iterator[Equivalents]:
    """The same of a program's configuration: a table for each section, from the importer's own rules."""
    for section in dict.fromkeys(rule.section for rule in program.rules):
        rules = [rule for rule in program.rules if rule.section == section]
        yield Equivalents(
            f"Configuration of {program.name}: {section}",
            tuple((f"`{rule.key}`", _ours(rule), _sentence(rule.why)) for rule in rules),
        )


def _ours(rule: Rule) -> str:
    if rule.becomes:
        return f"`{rule.becomes}`" if rule.fate is Fate.TAKEN else rule.becomes
    return "nothing" if rule.fate is Fate.NOT_NEEDED else str(rule.fate)


def _sentence(text: str) -> str:
    return text if text.startswith(("`", "updraft", "+")) else text[:1].upper() + text[1:]


COLUMNS = ["key", "what becomes of it", "setting", "why, and what it means"]
Table = tuple[str, list[str], list[list[str]]]


def tables(*programs: Program) -> Iterator[Table]:
    """Title, column titles and rows of each table: one of the words, then one for each kind of file."""
    yield "What the words mean", ["word", "meaning"], [[fate.value, text] for fate, text in MEANINGS.items()]
    for program in programs:
        rows = [[f"`{_name(rule)}`", rule.fate.value, _becomes(rule), _told(rule)] for rule in program.rules]
        rows += [[what, fate.value, "", text] for what, fate, text in program.notes]
        yield program.title, COLUMNS, rows


def _name(rule: Rule) -> str:
    return f"{rule.section}.{rule.key}" if rule.section else rule.key


def _becomes(rule: Rule) -> str:
    return f"`{rule.becomes}`" if rule.becomes else ""


def _told(rule: Rule) -> str:
    silent = f" Where the file doesn't say it: {rule.default}." if rule.default is not None else ""
    ours = rule.why.startswith(("`", "updraft"))
    return f"{rule.why if ours else rule.why[:1].upper() + rule.why[1:]}.{silent}"
