"""The result of an ecm.conf or an elastiq.conf: one cloud that speaks EC2, and one class."""

from collections.abc import Iterable, Mapping

import tomlkit

from updraft.importers.convert import Conversion
from updraft.importers.output.result import Result, Section, Setting

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


def result(made: Conversion, files: tuple[str, ...], pool: str, machines: tuple[str, ...]) -> Result:
    """All that the conversion has come to."""
    clouds, classes = {"ec2": _cloud(made)}, {"default": _worker(made)}
    return Result(files, pool, clouds, classes, demand=made.demand, owned=machines)


def _cloud(made: Conversion) -> Section:
    silent = (
        ()
        if "endpoint" in made.cloud
        else ('endpoint = "https://…"   # else that of EC2_URL, as an ec2rc.sh exports it',)
    )
    return Section(
        {"driver": Setting("ec2", ""), **_ordered(made.cloud, CLOUD_ORDER)},
        above=("Credentials never stand here: they are in /root/.aws/credentials, or the head's role.",),
        below=(*silent, *types(made.worker.get("flavors"))),
    )


def types(flavors: Setting | None) -> Iterable[str]:
    """How to say what a flavor holds, for endpoints that don't: most that aren't Amazon's."""
    names = flavors.value if flavors is not None and isinstance(flavors.value, list) else []
    if not names:
        return
    yield "Where the endpoint doesn't tell what a flavor holds (`updraft check` says so), write it here:"
    for name in names:
        yield f'instance_types.{tomlkit.string(name).as_string()} = {{ cpus = 4, memory = "8GiB" }}'


def _worker(made: Conversion) -> Section:
    below = []
    if "lifetime" not in made.worker:
        below.append('lifetime = "7d"   # then a machine takes no new jobs, and is replaced')
    if "slots" in made.worker:
        below.append('slots = "partitionable"   # instead: each job gets the cores and memory it asks for')
    return Section(
        _ordered(made.worker, WORKER_ORDER),
        below=tuple(below),
        layers=tuple(part for found in made.user_data for part in found.parts),
        variables=made.variables,
    )


def _ordered(settings: Mapping[str, Setting], order: Iterable[str]) -> dict[str, Setting]:
    return {name: settings[name] for name in order if name in settings}
