"""The files: what each is, by its content, the values in it with their lines, and others that it names."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePath

from updraft.errors import UsageError
from updraft.importers.formats import jsons

LARGEST = 1 << 20  # bytes; a configuration with its user-data has a few thousand


class Form(StrEnum):
    """What a file is."""

    ELASTIQ = "an elastiq.conf"
    ECM = "an ecm.conf"
    MASTER = "ECM's user-data for a master"
    EC2RC = "an ec2rc.sh"
    STATE = "elastiq's state file"
    USER_DATA = "user-data of a worker"
    RESOURCES = "a cloud_resources.conf"
    SCHEDULER = "a cloud_scheduler.conf"
    LIMITS = "a user limit file of Cloud Scheduler"
    ALIASES = "a target alias file of Cloud Scheduler"
    CSV2 = "an export of csv2"


@dataclass(frozen=True, slots=True)
class Value:
    """A value as a file has it. The text may be a secret, and never shows in a `repr`."""

    file: str
    line: int
    section: str
    key: str
    text: str = field(repr=False)

    @property
    def place(self) -> str:
        """Where it stands, for an error."""
        where = f"line {self.line}" if self.line else self.section
        return f"{self.file}, {where}: {self.key}"


@dataclass(frozen=True, slots=True)
class Source:
    """One file, read and recognised."""

    name: str
    form: Form
    text: str = field(repr=False)


ECM_KEYS = ("FLAVOR_VMS", "WNS_FLAVOR", "MAX_VMS", "MIN_VMS", "JOBS_PER_VM", "IDLE_TIME", "KEY_NAME")
_ELASTIQ = re.compile(r"^\[(elastiq|ec2|quota|substitute|debug)\]\s*$", re.MULTILINE)
_MASTER = re.compile(r"^(SLAVE_USERDATA|IMAGE_ID)=", re.MULTILINE)
_EC2RC = re.compile(r"^\s*(export\s+)?EC2_(URL|ACCESS_KEY|SECRET_KEY)=", re.MULTILINE)
_ECM = re.compile(rf"^\s*({'|'.join(ECM_KEYS)})\s*=", re.MULTILINE)
_INSTANCE = re.compile(r"i-[0-9A-Za-z]+")
_USER_DATA = re.compile(r"#!|#cloud-config|\[(amiconfig|cernvm|ucernvm)|mime-version:|content-type:", re.I)
_RESOURCES = re.compile(r"^cloud_type\s*[:=]", re.MULTILINE | re.IGNORECASE)
_COMMENT = re.compile(r"^[ \t]*[#;]+[ \t]*", re.MULTILINE)
_SCHEDULER = re.compile(r"^\[(global|job)\]\s*$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\s*(export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)")
_SHELL = re.compile(r"(export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")


def read(path: Path) -> Source:
    """One file. Raises UsageError, one sentence, where it can't be read or is nothing that is known."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > LARGEST:
        raise UsageError(f"{path}: is larger than 1 MiB, and no configuration; name the right file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8 text; name the configuration itself") from error
    return Source(path.name, _form(path, text), text)


def _form(path: Path, text: str) -> Form:
    start = text.lstrip()
    if not start:
        raise UsageError(f"{path}: is empty; there is nothing to import")
    if start.startswith("#!"):
        return Form.MASTER if len(_MASTER.findall(text)) > 1 else _script(text)
    if _USER_DATA.match(start):
        return Form.USER_DATA
    if (found := _configuration(text)) is not None:
        return found
    if all(_INSTANCE.fullmatch(word) for word in text.split()):
        return Form.STATE
    if (found := _configuration(_COMMENT.sub("", text))) is not None:
        raise UsageError(
            f"{path}: is {found} in which what counts is commented out, as in a sample; take the # from the "
            "lines that are yours"
        )
    raise UsageError(
        f"{path}: is neither an elastiq.conf ([elastiq], [ec2], [quota]) nor an ecm.conf (FLAVOR_VMS= and "
        "the like), no cloud_resources.conf (cloud_type:), cloud_scheduler.conf ([global], [job]) or export "
        "of csv2 (JSON or CSV), nor a file that goes with one"
    )


def _configuration(text: str) -> Form | None:
    """Which configuration it is, by the lines that aren't comments; None where it is none that is known."""
    if (found := _cloud_scheduler(text)) is not None:
        return found
    known = ((_ELASTIQ, Form.ELASTIQ), (_ECM, Form.ECM), (_EC2RC, Form.EC2RC))
    return next((form for pattern, form in known if pattern.search(text)), None)


def _cloud_scheduler(text: str) -> Form | None:
    """Which file of Cloud Scheduler it is, None where it is none."""
    kind = jsons.kind(text)
    if kind:
        return {"limits": Form.LIMITS, "aliases": Form.ALIASES}.get(kind, Form.CSV2)
    if _RESOURCES.search(text):
        return Form.RESOURCES
    return Form.SCHEDULER if _SCHEDULER.search(text) else None


def _script(text: str) -> Form:
    return Form.EC2RC if re.search(r"^\s*export\s+EC2_", text, re.MULTILINE) else Form.USER_DATA


def values(source: Source) -> list[Value]:
    """Every value of a configuration, in the order of its lines; nothing for user-data and state files.

    Raises UsageError that names every line that is no value.
    """
    if source.form in (Form.ELASTIQ, Form.RESOURCES, Form.SCHEDULER):
        return _options(source)
    if source.form in (Form.ECM, Form.MASTER, Form.EC2RC):
        return list(_assignments(source))
    return []


def owned(source: Source) -> tuple[str, ...]:
    """The instances of a state file, each once."""
    return tuple(dict.fromkeys(source.text.split()))


def _assignments(source: Source) -> Iterator[Value]:
    """KEY=VALUE lines; of a script only those in its first column, which set what its program was told."""
    script = source.form is not Form.ECM
    form = _SHELL if script else _ASSIGNMENT
    for number, line in enumerate(source.text.splitlines(), start=1):
        bare = not line.strip() or line.lstrip().startswith("#")
        found = None if bare else form.fullmatch(line)
        if found:
            yield Value(source.name, number, "", found[2], _unquoted(found[3]))
        elif not bare and not script:
            yield Value(source.name, number, "", "(no KEY=VALUE)", "")


def _unquoted(text: str) -> str:
    # A second "=" has crept into a sample that many people copied.
    bare = re.split(r"\s#", text.strip().removeprefix("="), maxsplit=1)[0].strip()
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        return bare[1:-1]
    return bare


def _options(source: Source) -> list[Value]:
    found = list(_ini(source))
    strays = [one for one in found if not one.key]
    if strays:
        raise UsageError(
            "\n".join(
                f"{source.name}, line {one.line}: is neither [section] nor key = value" for one in strays
            )
        )
    return found


def _ini(source: Source) -> Iterator[Value]:
    """`key = value` under `[section]`; a line that begins with a blank goes on with the value before it.

    A line that is neither is a value without a key.
    """
    section, pending = "", None
    for number, line in enumerate(source.text.splitlines(), start=1):
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        if line[0].isspace() and pending is not None:
            pending = _longer(pending, line)
            continue
        if pending is not None:
            yield pending
            pending = None
        if line.startswith("[") and "]" in line:
            section = line[1 : line.index("]")].strip()
        else:
            pending = _option(source, number, section, line)
    if pending is not None:
        yield pending


def _longer(value: Value, line: str) -> Value:
    text = f"{value.text}\n{line.strip()}"
    return Value(value.file, value.line, value.section, value.key, text)


def _option(source: Source, number: int, section: str, line: str) -> Value:
    found = re.match(r"([^=:]+?)\s*[=:](.*)", line)
    if found is None:
        return Value(source.name, number, section, "", "")
    text = re.split(r"\s;", found[2], maxsplit=1)[0].strip()
    return Value(source.name, number, section, found[1].strip().lower(), text)


NAMED = {
    "cloud_resource_config": Form.RESOURCES,
    "user_limit_file": Form.LIMITS,
    "target_cloud_alias_file": Form.ALIASES,
    "default_yaml": Form.USER_DATA,
}


def with_those_beside(paths: Sequence[Path], sources: Sequence[Source]) -> list[Source]:
    """The sources, and those that a cloud_scheduler.conf among them names, if they are in its directory.

    A file of the same kind that was named on the command line comes before one that is found so.
    """
    found = list(sources)
    for path, source in zip(paths, sources, strict=True):
        if source.form is Form.SCHEDULER:
            found += _beside(
                path, source, {one.form for one in sources}, {"", *(one.name for one in sources)}
            )
    return found


def _beside(path: Path, source: Source, there: set[Form], already: set[str]) -> list[Source]:
    try:
        named = {value.key: value.text for value in values(source) if value.key in NAMED and value.text}
    except UsageError:
        return []  # said with all other faults of the file
    wanted = {
        PurePath(text.strip("\"'")).name: NAMED[key]
        for key, text in named.items()
        if NAMED[key] not in there or NAMED[key] is Form.USER_DATA
    }
    nearby = [path.parent / name for name in wanted if name not in already and (path.parent / name).is_file()]
    return [one for one in map(read, nearby) if one.form is wanted[one.name]]
