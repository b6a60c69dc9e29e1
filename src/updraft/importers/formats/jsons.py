"""JSON and CSV of Cloud Scheduler: which file it is, and the records of an export of csv2."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from updraft.errors import UsageError

Kind = Literal["", "limits", "aliases", "csv2"]
SEPARATORS = ("|", ";", "\t", ",")
# What `cloudscheduler cloud list -CSV ''` prints, in this order and without a line of titles.
COLUMNS = (
    *("group_name", "cloud_name", "enabled", "cloud_priority", "authurl", "project", "project_domain_name"),
    *("project_domain_id", "username", "user_domain_name", "user_domain_id", "region", "spot_price"),
    *("cloud_type", "cores_ctl", "cores_softmax", "cores_max", "ram_ctl", "ram_max", "vm_boot_volume"),
    *("vm_flavor", "vm_image", "vm_keep_alive", "vm_keyname", "vm_network", "vm_security_groups"),
    *("cascading_vm_flavor", "cascading_vm_image", "cascading_vm_keep_alive", "cascading_vm_keyname"),
    *("cascading_vm_network", "cascading_vm_security_groups", "cacertificate", "flavor_exclusions"),
    *("flavor_names", "group_exclusions", "metadata_names"),
)


@dataclass(frozen=True, slots=True)
class Record:
    """A row of one of csv2's tables: its line (0 in JSON), and the texts by column, empty where null."""

    line: int
    columns: Mapping[str, str] = field(repr=False)

    @property
    def table(self) -> str:
        """Which table it is of: "cloud", "group", "metadata", "alias", "exclusion", or "" for any other."""
        has = self.columns.keys()
        if "cloud_type" in has and {"authurl", "cores_ctl"} & has:
            return "cloud"
        if "alias_name" in has:
            return "alias"
        if {"metadata_name", "metadata"} <= has:
            return "metadata"
        if "group_name" in has and {"htcondor_fqdn", "condor_central_manager"} & has:
            return "group"
        return "exclusion" if {"group_name", "cloud_name", "flavor_name"} == has else ""


def kind(text: str) -> Kind:
    """Which file of Cloud Scheduler a text is, "" where it is neither JSON nor CSV of its kind."""
    if not text.lstrip().startswith(("{", "[")):
        return "csv2" if _separator(text) else ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if isinstance(found, dict) and "cloud_list" not in found:
        if all(isinstance(value, int) and not isinstance(value, bool) for value in found.values()):
            return "limits"
        if all(_names(value) is not None for value in found.values()):
            return "aliases"
    return "csv2" if any(record.table for record in _of_json(found)) else ""


def limits(text: str) -> dict[str, int]:
    """The machines that each user may have, as the user limit file says."""
    return dict(json.loads(text))


def aliases(text: str) -> dict[str, list[str]]:
    """The clouds of each alias, as the target alias file says."""
    return {name: _names(value) or [] for name, value in json.loads(text).items()}


def records(name: str, text: str) -> list[Record]:
    """All rows of an export. Raises UsageError that names every line that isn't one."""
    if text.lstrip().startswith(("{", "[")):
        return [record for record in _of_json(json.loads(text)) if record.table]
    return _of_csv(name, text)


def _names(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [one.strip() for one in value]
    return None


def _of_json(found: Any) -> Iterator[Record]:
    """Every object in it that may be a row; a list may stand in a text, as csv2's own pages have it."""
    if isinstance(found, str) and found.lstrip().startswith("["):
        try:
            found = json.loads(found)
        except ValueError:
            return
    if isinstance(found, list):
        for one in found:
            if isinstance(one, dict):
                yield _record(one)
    elif isinstance(found, dict):
        yield _record(found)
        for value in found.values():
            if isinstance(value, list | str):
                yield from _of_json(value)


def _record(row: Mapping[str, Any]) -> Record:
    return Record(0, {key: _cell(key, _text(value)) for key, value in row.items()})


def _cell(column: str, text: str) -> str:
    """A cell as one line of plain signs; only the text of a layer keeps its own."""
    if column == "metadata":
        return text
    return "".join(sign if sign.isprintable() else " " for sign in text).strip()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ",".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def _separator(text: str) -> str:
    """The separator of a CSV that is a list of clouds, "" where it isn't one."""
    first = text.lstrip().partition("\n")[0].strip()
    for separator in SEPARATORS:
        cells = [cell.strip() for cell in first.split(separator)]
        titled = {"cloud_name", "cloud_type"} <= set(cells)
        if titled or len(cells) == len(COLUMNS):
            return separator
    return ""


def _of_csv(name: str, text: str) -> list[Record]:
    separator = _separator(text)
    lines = csv.reader(io.StringIO(text), delimiter=separator)
    columns: tuple[str, ...] = COLUMNS
    found, faults = [], []
    for cells in lines:
        line, texts = lines.line_num, [cell.strip() for cell in cells]
        if not any(texts):
            continue
        if {"cloud_name", "cloud_type"} <= set(texts):
            columns = tuple(texts)
        elif len(texts) != len(columns):
            faults.append(
                f"{name}, line {line}: has {len(texts)} cells where {len(columns)} belong; a value with the "
                "separator in it does so: export with -CSEP '|'"
            )
        else:
            empty = ("None", "-", "null")
            pairs = zip(columns, texts, strict=True)
            found.append(
                Record(line, {key: "" if cell in empty else _cell(key, cell) for key, cell in pairs})
            )
    if faults:
        raise UsageError("\n".join(faults))
    return found
