"""The text of the updraft.toml that an import comes to: commented, and right by `config.load`."""

from collections.abc import Iterable, Mapping
from typing import cast

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.items import AoT, InlineTable, Item, Table

from updraft.importers.output.result import Result, Section, Setting
from updraft.importers.output.userdata import Part

READ_FIRST = "Secrets in the layers were looked for, as best we can: read them before this file goes to git."


def text_of(result: Result) -> str:
    """The file."""
    document = tomlkit.document()
    _remarks(document, result)
    document.add("pool", _pool(result))
    if result.demand:
        document.add("demand", _table(Section(result.demand)))
    families = {"users": result.users, "clouds": result.clouds, "classes": result.classes}
    for family, tables in families.items():
        if tables:
            document.add(family, _under({name: _table(section) for name, section in tables.items()}))
    return document.as_string().rstrip("\n") + "\n" + _owned(result.owned)


def _remarks(document: TOMLDocument, result: Result) -> None:
    document.add(tomlkit.comment(f"Made by `updraft import` from {', '.join(result.files)}."))
    document.add(tomlkit.comment("Each comment behind a value names the key that it comes from."))
    layers = any(section.layers for section in result.classes.values())
    for remark in (
        "Every key: docs/reference/settings.md. To check it: `updraft config check`",
        *((READ_FIRST,) if layers else ()),
        *result.remarks,
    ):
        document.add(tomlkit.comment(remark))
    document.add(tomlkit.nl())


def _pool(result: Result) -> Table:
    table = tomlkit.table()
    table.add("name", result.pool)
    table["name"].comment("a tag on every machine; two pools in one account need two names")
    _add(table, result.settings)
    table.add(tomlkit.nl())
    return table


def _table(section: Section) -> Table:
    table = tomlkit.table()
    for line in section.above:
        table.add(tomlkit.comment(line))
    _add(table, section.settings)
    for line in section.below:
        table.add(tomlkit.comment(line))
    table.add(tomlkit.nl())
    if section.layers:
        table.add("layers", _layers(section.layers, section.variables))
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
        table.add(tomlkit.nl())
        tables.append(table)
    return tables


def _multiline(text: str) -> Item:
    """A text of several lines as it is, where TOML can have it so."""
    plain = all(char in "\n\t" or char.isprintable() for char in text)
    if plain and "'''" not in text and not text.endswith("'"):
        # Parsed, because only so the first line stands below the quotes; TOML doesn't count that line's end.
        return cast(Item, tomlkit.parse(f"text = '''\n{text}'''").item("text"))
    return tomlkit.string(text)


def _add(table: Table, settings: Mapping[str, Setting]) -> None:
    for name, setting in settings.items():
        value = setting.value
        if isinstance(value, Mapping):
            item: Item = tomlkit.inline_table()
            cast(InlineTable, item).update(value)
        else:
            item = tomlkit.item(value)
        if setting.origin:
            item.comment(setting.origin)
        table.add(name, item)


def _under(tables: Mapping[str, Table]) -> Table:
    outer = tomlkit.table(is_super_table=True)
    for name, table in tables.items():
        outer.add(name, table)
    return outer


def _owned(machines: Iterable[str]) -> str:
    """The machines of a state file, for a person to see to."""
    lines = [f"#   {machine}" for machine in machines]
    if not lines:
        return ""
    head = (
        "",
        f"# elastiq's state file names {len(lines)} of its machines. updraft leaves them alone, and can't",
        "# adopt them: other user-data started them. Let their jobs end, and remove them in the cloud:",
    )
    return "\n".join([*head, *lines]) + "\n"
