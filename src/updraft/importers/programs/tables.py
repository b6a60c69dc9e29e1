"""The rules of the importers as tables, for the reference: made from what the importers themselves read."""

from collections.abc import Iterator

from updraft.importers.output.report import MEANINGS
from updraft.importers.output.rules import Program, Rule

COLUMNS = ["key", "what becomes of it", "setting", "why, and what it means"]
Table = tuple[str, list[str], list[list[str]]]


def tables(*programs: Program) -> Iterator[Table]:
    """Title, column titles and rows of each table: one of the words, then one for each kind of file."""
    yield "What the words mean", ["word", "meaning"], [[fate.value, text] for fate, text in MEANINGS.items()]
    for program in programs:
        rows = [
            [f"`{_name(rule)}`", rule.fate.value, _becomes(rule), _sentence(rule)] for rule in program.rules
        ]
        rows += [[what, fate.value, "", text] for what, fate, text in program.notes]
        yield program.title, COLUMNS, rows


def _name(rule: Rule) -> str:
    return f"{rule.section}.{rule.key}" if rule.section else rule.key


def _becomes(rule: Rule) -> str:
    return f"`{rule.becomes}`" if rule.becomes else ""


def _sentence(rule: Rule) -> str:
    silent = f" Where the file doesn't say it: {rule.default}." if rule.default is not None else ""
    ours = rule.why.startswith(("`", "updraft"))
    return f"{rule.why if ours else rule.why[:1].upper() + rule.why[1:]}.{silent}"
