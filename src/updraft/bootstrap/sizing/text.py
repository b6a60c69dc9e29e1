"""A pool's configuration as a file for people: the reason above each setting."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from updraft.bootstrap.sizing.roles import LEFT_OUT, settings
from updraft.bootstrap.sizing.setting import Setting, knowledge
from updraft.bootstrap.sizing.size import PoolSize, child_collectors
from updraft.bootstrap.sizing.system import DROP_IN, SYSCTL, Least, kernel, needs, unit_limit

_WIDTH = 100
TITLES = {"head": "A head", "submit": "A submit node", "worker": "A worker"}
PARTS = ("all", "htcondor", "systemd", "sysctl")


@dataclass(frozen=True, slots=True)
class Configuration:
    """All that a machine of a role is to be told, for a pool of a size; `notes` tells the rest."""

    role: str
    version: str
    machines: int
    settings: tuple[Setting, ...]
    unit: Least | None
    kernel: tuple[Least, ...]
    needs: tuple[Least, ...]
    left_out: tuple[Setting, ...]
    notes: tuple[str, ...]


def configuration(size: PoolSize, role: str, *, version: str, machine: str = "") -> Configuration:
    """The whole of it. Raises BootstrapError for a version that can't be told."""
    known = knowledge()
    release = known.release(version)
    own = known.defaults[release]
    return Configuration(
        role=role,
        version=release,
        machines=size.machines,
        settings=settings(size, role, version=version, machine=machine),
        unit=unit_limit(size, role),
        kernel=kernel(size, role),
        needs=needs(size, role),
        left_out=tuple(
            Setting(name, own[name], why, "HTCondor's default", known.since(name))
            for name, (roles, why) in LEFT_OUT.items()
            if name in own and role in roles
        ),
        notes=tuple(_notes(size, role, machine)),
    )


def _notes(size: PoolSize, role: str, machine: str) -> Iterator[str]:
    children = child_collectors(size.machines)
    if role == "head" and not size.head_submits:
        yield (
            f"{size.running} jobs at once are too many for one schedd: take {size.submit_nodes} submit nodes "
            f"(--role submit), {size.jobs_each} jobs each, and none on this machine."
        )
    if role == "head" and children:
        yield (
            f"Each worker is told its child of {children}: `updraft pool config --role worker --machine ID`."
        )
    if role == "worker" and children and not machine:
        yield (
            "COLLECTOR_HOST is missing: it differs from machine to machine. --machine ID writes it; "
            "or let each "
            f"machine do so at its boot, ID being what the cloud calls it:\n"
            f'sum=$(printf %s "$ID" | sha256sum | cut -c1-7)\n'
            f'echo "COLLECTOR_HOST = \\$(CONDOR_HOST)?sock=collector$((0x$sum % {children} + 1))"'
        )
    if role == "worker" and size.reach == "forwarded":
        yield "TCP_FORWARDING_HOST is missing: the public address of each machine, at each of its boots."


def rendered(found: Configuration, part: str = "all") -> str:
    """As text: HTCondor's file, with the others as comments in it; or one of them alone."""
    if part == "systemd":
        return _unit(found)
    if part == "sysctl":
        return _sysctl(found)
    blocks = [_htcondor(found)]
    if part == "all":
        blocks += [_commented(DROP_IN, _unit(found)), _commented(SYSCTL, _sysctl(found)), _rest(found)]
    return "\n".join(block for block in blocks if block)


def _htcondor(found: Configuration) -> str:
    lines = [
        f"# {TITLES[found.role]} of HTCondor {found.version} in a pool of {found.machines} machines at most,",
        "# by `updraft pool config`.",
    ]
    lines += [line for note in found.notes for line in _comment(note)]
    before = ""
    for one in found.settings:
        if one.reason != before:
            lines += ["", *_comment(f"{one.reason} ({one.source})")]
        before = one.reason
        lines.append(f"{one.name} = {one.value}")
    return "\n".join(lines) + "\n"


def _unit(found: Configuration) -> str:
    if found.unit is None:
        return ""
    return "\n".join([*_comment(found.unit.reason), "[Service]", f"LimitNOFILE={found.unit.at_least}"]) + "\n"


def _sysctl(found: Configuration) -> str:
    if not found.kernel:
        return ""
    lines = ["# At least; strike out what `sysctl NAME` says is larger already."]
    for one in found.kernel:
        lines += [*_comment(f"{one.reason} ({one.source})"), f"{one.name} = {one.at_least}"]
    return "\n".join(lines) + "\n"


def _rest(found: Configuration) -> str:
    lines = [
        f"# {one.name}: {one.at_least} {one.unit} or more. {one.reason} ({one.source})" for one in found.needs
    ]
    if found.left_out:
        lines.append("# Left to HTCondor, which does it by itself:")
        lines += [f"#   {one.name} = {one.value} ({one.reason})" for one in found.left_out]
    return "\n".join(lines) + "\n" if lines else ""


def _commented(path: str, text: str) -> str:
    return "\n".join([f"# {path}:", *(f"#   {line}" for line in text.splitlines())]) + "\n" if text else ""


def _comment(text: str) -> Sequence[str]:
    return list(_wrapped(text.splitlines()))


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        for short in textwrap.wrap(line, _WIDTH - 2, break_long_words=False, break_on_hyphens=False):
            yield f"# {short}"
