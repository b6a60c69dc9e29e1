"""The text of the updraft.toml that an import comes to: commented, and right by `config.load`."""

from collections.abc import Iterable, Mapping
from typing import cast

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.items import AoT, Item, Table

from updraft.importers.result import Result, Setting
from updraft.importers.userdata import Part

CLOUD_ORDER = ("endpoint", "flavors", "key_name")
WORKER_ORDER = (
    "image",
    "flavors",
    "min",
    "max",
    "idle_limit",
    "boot_deadline",
    "lifetime",
    "slots",
    "condor",
    "universes",
    "contextualisation",
)


def text_of(result: Result) -> str:
    """The file."""
    document = tomlkit.document()
    _remarks(document, result)
    document.add("pool", _pool(result))
    document.add("clouds", _under("ec2", _cloud(result)))
    document.add("classes", _under("default", _worker(result)))
    return document.as_string().rstrip("\n") + "\n" + _owned(result.owned)


def _remarks(document: TOMLDocument, result: Result) -> None:
    document.add(tomlkit.comment(f"Made by `updraft import` from {', '.join(result.files)}."))
    document.add(tomlkit.comment("Each comment behind a value names the key that it comes from."))
    for remark in (
        "Every key: docs/reference/settings.md. To check it: `updraft config check`",
        *result.remarks,
    ):
        document.add(tomlkit.comment(remark))
    document.add(tomlkit.nl())


def _pool(result: Result) -> Table:
    table = tomlkit.table()
    table.add("name", result.pool)
    table["name"].comment("a tag on every machine; two pools in one account need two names")
    table.add(tomlkit.nl())
    return table


def _cloud(result: Result) -> Table:
    table = tomlkit.table()
    table.add(
        tomlkit.comment(
            "Credentials never stand here: they are in /root/.aws/credentials, or the head's role."
        )
    )
    table.add("driver", "ec2")
    if "endpoint" not in result.cloud:
        table.add(
            tomlkit.comment('endpoint = "https://…"   # else that of EC2_URL, as an ec2rc.sh exports it')
        )
    _add(table, result.cloud, CLOUD_ORDER)
    for line in _types(result.worker.get("flavors")):
        table.add(tomlkit.comment(line))
    table.add(tomlkit.nl())
    return table


def _types(flavors: Setting | None) -> Iterable[str]:
    """How to say what a flavor holds, for endpoints that don't: most that aren't Amazon's."""
    names = flavors.value if flavors is not None and isinstance(flavors.value, list) else []
    if not names:
        return
    yield "Where the endpoint doesn't tell what a flavor holds (`updraft check` says so), write it here:"
    for name in names:
        yield f'instance_types.{tomlkit.string(name).as_string()} = {{ cpus = 4, memory = "8GiB" }}'


def _worker(result: Result) -> Table:
    table = tomlkit.table()
    _add(table, result.worker, WORKER_ORDER)
    if "lifetime" not in result.worker:
        table.add(tomlkit.comment('lifetime = "7d"   # then a machine takes no new jobs, and is replaced'))
    if "slots" in result.worker:
        table.add(
            tomlkit.comment(
                'slots = "partitionable"   # instead: each job gets the cores and memory it asks for'
            )
        )
    if result.layers:
        table.add(tomlkit.nl())
        table.add("layers", _layers(result.layers, result.variables))
    return table


def _layers(parts: Iterable[Part], variables: Mapping[str, str]) -> AoT:
    tables = tomlkit.aot()
    for part in parts:
        table = tomlkit.table()
        if part.variables:
            values = tomlkit.inline_table()
            values.update({name: variables.get(name, "") for name in part.variables})
            table.add("variables", values)
            table["variables"].comment("empty: the head's own, found at each launch")
        table.add("text", _multiline(part.text))
        tables.append(table)
    return tables


def _multiline(text: str) -> Item:
    """A text of several lines as it is, where TOML can have it so."""
    plain = all(char in "\n\t" or char.isprintable() for char in text)
    if plain and "'''" not in text and not text.endswith("'"):
        # Parsed, because only so the first line stands below the quotes; TOML doesn't count that line's end.
        return cast(Item, tomlkit.parse(f"text = '''\n{text}'''").item("text"))
    return tomlkit.string(text)


def _add(table: Table, settings: Mapping[str, Setting], order: Iterable[str]) -> None:
    for name in order:
        if name in settings:
            table.add(name, settings[name].value)
            table[name].comment(settings[name].origin)


def _under(name: str, table: Table) -> Table:
    outer = tomlkit.table(is_super_table=True)
    outer.add(name, table)
    return outer


def _owned(machines: Iterable[str]) -> str:
    """The machines of a state file, as commands that a person may give."""
    lines = [f"#   updraft adopt {machine}" for machine in machines]
    if not lines:
        return ""
    head = (
        "",
        f"# elastiq's state file names {len(lines)} of its machines. They belong to the old pool: let their",
        "# jobs end and remove them there. One that is in this pool can be taken over (docs/howto/adopt.md):",
    )
    return "\n".join([*head, *lines]) + "\n"
