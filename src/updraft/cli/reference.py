"""Writes docs/reference/ from the code: `python -m updraft.cli.reference docs/reference`.

Verbs come from click, settings from the models, errors from the error tree, reason codes from every place in
the source that makes one, the forms of JSON from their schemas. A test fails when a page says otherwise.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from updraft import errors, importers
from updraft.cli.codes import error_classes, oneline, reason_codes
from updraft.cli.main import updraft
from updraft.cli.schemas import DOCUMENTS, of_verb
from updraft.cli.verbs import VERBS, installed, load_verb
from updraft.cli.watching.metrics_page import metrics_parts
from updraft.config.drivers import driver_names, settings_model
from updraft.config.known import TABLES
from updraft.config.tables.part import Part
from updraft.config.values.units import spell
from updraft.importers.programs.equivalents import COLUMNS as EQUIVALENT
from updraft.importers.programs.equivalents import configuration, equivalents, meanings, tables

NOTE = "<!-- Written by `make docs` from the code; change it there. -->\n"


def pages() -> Mapping[str, str]:
    """Every page of the reference, by the name of its file."""
    return {
        "commands.md": commands_page(),
        "settings.md": settings_page(),
        "errors.md": errors_page(),
        "reasons.md": reasons_page(),
        "json.md": json_page(),
        "metrics.md": page("Metrics", *metrics_parts(markdown_table)),
        "import.md": import_page(),
        "from-cloud-scheduler.md": cloud_scheduler_page(),
    }


def write(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def page(title: str, *parts: str) -> str:
    """A page of this reference."""
    return "\n\n".join([f"# {title}", NOTE.strip(), *(part.strip() for part in parts if part.strip())]) + "\n"


def markdown_table(titles: list[str], rows: list[list[str]]) -> str:
    """A table; a `|` inside a cell is escaped."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [titles, ["---"] * len(titles), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# ---------------------------------------------------------------------------------------------- commands


def commands_page() -> str:
    """Every verb with its arguments and options, as `--help` has them."""
    intro = (
        "`updraft [--config PATH] VERB`. Exit codes: 0 done; 1 a problem was found; 2 the call or the "
        "configuration is wrong; 130 interrupted. `--json` is described in [json.md](json.md)."
    )
    parts = [command for name in VERBS if installed(name) for command in _commands(name, load_verb(name))]
    return page("Commands", intro, _options(updraft), *parts)


def _commands(path: str, command: click.Command) -> Iterator[str]:
    if isinstance(command, click.Group):
        alone = f"\n\n{_options(command)}" if command.invoke_without_command else ""
        yield f"## updraft {path}\n\n{_plain_help(command)}{alone}"
        for name, inner in command.commands.items():
            yield from _commands(f"{path} {name}", inner)
        return
    context = click.Context(command, info_name=f"updraft {path}")
    usage = " ".join([f"updraft {path}", *command.collect_usage_pieces(context)])
    text = f"## updraft {path}\n\n```\n{usage}\n```\n\n{_plain_help(command)}"
    yield f"{text}\n\n{_options(command)}"


def _plain_help(command: click.Command) -> str:
    """What a verb says of itself, without the mark that keeps click from filling a paragraph."""
    return inspect.cleandoc(command.help or "").replace("\b\n", "")


def _options(command: click.Command) -> str:
    context = click.Context(command)
    records = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    rows = [[f"`{names}`", text] for names, text in filter(None, records)]
    return markdown_table(["option", "what it does"], rows) if rows else ""


# ---------------------------------------------------------------------------------------------- settings


def settings_page() -> str:
    """Every key of updraft.toml."""
    intro = (
        "`updraft.toml` is looked for in this order: `--config PATH`, `$UPDRAFT_CONFIG`, `./updraft.toml`, "
        "`/etc/updraft/updraft.toml`. Durations carry a unit (`40m`, `1h30m`, `7d`), sizes too "
        "(`4GiB`); money is "
        "a plain number per hour, in one currency for the whole file. `updraft config check` "
        "names every fault "
        "with its line. NAME stands for a name of the site's choice."
    )
    drivers = (_driver_text(name) for name in driver_names())
    return page("Settings", intro, *(_settings_table(name, model) for name, model in TABLES), *drivers)


def _driver_text(name: str) -> str:
    """What a driver's own keys are, from its settings model."""
    title = f'## [clouds.NAME] with driver = "{name}"'
    model = settings_model(name)
    if model is None:
        return title
    fields = model.model_fields
    rows = [[f"`{key}`", _default(field)] for key, field in fields.items()]
    columns = ["key", "default"]
    if all(field.description for field in fields.values()):
        columns.append("meaning")
        rows = [[*row, oneline(field.description)] for row, field in zip(rows, fields.values(), strict=True)]
    return f"{title}\n\n{oneline(model.__doc__)}\n\n{markdown_table(columns, rows)}"


def _settings_table(name: str, model: type[Part]) -> str:
    rows = [
        [f"`{key}`", _default(field), oneline(field.description)] for key, field in model.model_fields.items()
    ]
    return f"## [{name}]\n\n{oneline(model.__doc__)}\n\n{markdown_table(['key', 'default', 'meaning'], rows)}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Part) or value is None or value in ({}, (), ""):
        return "none"
    if isinstance(value, BaseModel | dict):
        return "see above"
    if isinstance(value, float) and any(map(_is_seconds, field.metadata)):
        return f"`{spell(value)}`"
    return f"`{', '.join(value) if isinstance(value, tuple) else value}`"


def _is_seconds(mark: Any) -> bool:
    return getattr(getattr(mark, "func", None), "__name__", "") == "seconds"


# ------------------------------------------------------------------------------------------------ errors


def errors_page() -> str:
    """The error tree, and each error with its exit code."""
    tree = inspect.cleandoc(errors.__doc__ or "").partition("::\n")[2].partition("\nWhoever")[0]
    rows = [
        [
            f"`{one.__name__}`",
            str(one.exit_code),
            f"`{one.code}`" if issubclass(one, errors.CloudError) else "",
            oneline(one.__doc__),
        ]
        for one in error_classes()
    ]
    intro = (
        "Every error that updraft raises on purpose is shown as one sentence on stderr. Anything "
        "else is a bug: "
        "please report it, with the traceback that `UPDRAFT_DEBUG=1` shows."
    )
    drawn = "```\n" + inspect.cleandoc(tree) + "\n```"
    return page(
        "Errors", intro, drawn, markdown_table(["error", "exit code", "reason code", "meaning"], rows)
    )


# ----------------------------------------------------------------------------------------------- reasons


def reasons_page() -> str:
    """Every reason code, with the sentences that come with it and the rooms that say it."""
    intro = (
        "A reason is a short code and a sentence. The same pair reaches the log, the ledger, "
        "`status`, `explain` "
        "and `events`; programs may rely on the code. `…` stands for what differs from case to case."
    )
    rows = [
        [f"`{code}`", "<br>".join(sorted(texts)) or "(as the cause says it)", ", ".join(sorted(rooms))]
        for code, (texts, rooms) in sorted(reason_codes().items())
    ]
    return page("Reasons", intro, markdown_table(["code", "sentence", "said by"], rows))


# -------------------------------------------------------------------------------------------------- json


def json_page() -> str:
    """The forms of what `--json` prints."""
    intro = (
        "Every verb that shows has `--json`: one document on stdout, `events` one a line. "
        "`version` is 1; a key "
        "described here keeps its name and meaning as long as it is, and keys that are not "
        "described here may "
        "come and go. Times are POSIX seconds, durations are seconds, memory is MiB, disk is KiB."
    )
    verbs: dict[type, list[str]] = {}
    for verb, document in DOCUMENTS.items():
        verbs.setdefault(document, []).append(f"updraft {verb}")
    parts = (f"## {', '.join(same)}\n\n{_form_text(of_verb(one))}" for one, same in verbs.items())
    return page("JSON", intro, *parts)


def _form_text(form: Mapping[str, Any]) -> str:
    rows = [[f"`{path}`", kind, text] for path, kind, text in _keys(form, "")]
    return f"{form['description']}\n\n{markdown_table(['key', 'type', 'meaning'], rows)}"


def _keys(form: Mapping[str, Any], above: str) -> Iterator[tuple[str, str, str]]:
    for key, value in form.get("properties", {}).items():
        path = f"{above}{key}"
        yield path, _type_of(value), value.get("description", "")
        value = next((one for one in value.get("anyOf", ()) if one.get("properties")), value)
        inner = value["items"] if value.get("type") == "array" else value
        more = inner.get("additionalProperties")
        if isinstance(more, dict):
            yield from _keys(more, f"{path}.NAME.")
        yield from _keys(inner, f"{path}[]." if inner is not value else f"{path}.")


def _type_of(value: Mapping[str, Any]) -> str:
    if "enum" in value:
        return " or ".join(f'"{one}"' for one in value["enum"])
    if "const" in value:
        return str(value["const"])
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(_type_of, value["anyOf"])))
    kind = value.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# ------------------------------------------------------------------------------------------------ import


def import_page() -> str:
    """What `updraft import` makes of each key, from the importers' own rules."""
    intro = (
        "`updraft import` recognises each file by its content, writes `updraft.toml` to stdout and says on "
        "stderr what became of each key. A key that isn't named here is reported as unknown. Passwords and "
        "keys in scripts and cloud-config are found by best effort: read the file before it goes to git. How "
        "to go on: [from ECM](../howto/from-ecm.md), [from elastiq](../howto/from-elastiq.md), [from Cloud "
        "Scheduler](../howto/from-cloud-scheduler.md), whose keys have [a page of their "
        "own](from-cloud-scheduler.md)."
    )
    parts = (
        f"## {title}\n\n{markdown_table(titles, rows)}"
        for title, titles, rows in tables(importers.ECM, importers.ELASTIQ)
    )
    return page("Import", intro, *parts, *_meanings())


def _meanings() -> Iterator[str]:
    yield (
        "## What values meant\n\nHow the programs themselves read their values, by release, where that isn't "
        "plain or has changed: looked up in their source."
    )
    for one in meanings():
        rows = [[f"`{key}`", *rest] for key, *rest in one.rows]
        yield f"### {one.name}\n\n{markdown_table(['key', 'releases', 'meaning', 'in its source'], rows)}"


def cloud_scheduler_page() -> str:
    """What each verb, option, job attribute and key of Cloud Scheduler and csv2 is here."""
    intro = (
        "What users of Cloud Scheduler (version 1) and of csv2 type and write, and what it is here, or "
        "why it "
        "isn't. How to go on: [from Cloud Scheduler](../howto/from-cloud-scheduler.md). The last tables "
        "are what "
        "`updraft import` does; its words (replaced, secret) are told in [Import](import.md)."
    )
    found = [*equivalents(), *configuration(importers.CLOUD_SCHEDULER), *configuration(importers.CSV2)]
    parts = (
        f"## {one.title}\n\n{one.intro}\n\n{markdown_table(EQUIVALENT, [list(row) for row in one.rows])}"
        for one in found
    )
    return page("From Cloud Scheduler", intro, *parts)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
