"""Settings to compare: a policy with one value after the other in the place of what it says."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from updraft.config import model
from updraft.config.tables.worker import WorkerClass
from updraft.core import settings as core
from updraft.core.plan import plan as core_plan
from updraft.core.settings import Policy
from updraft.errors import UsageError
from updraft.sim.conditions import SimCloud
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.simulation import Decide

MOST = 64
Change = Callable[[Policy], Policy]

# keys of [classes.NAME] that the decisions read, and the field of the core's class that each becomes
_OF_A_CLASS: Mapping[str, str] = {
    "idle_limit": "idle_limit",
    "wait_target": "wait_target",
    "min": "min_machines",
    "max": "max_machines",
    "lifetime": "lifetime",
    "boot_deadline": "boot_deadline",
    "drain_deadline": "drain_deadline",
    "markets": "markets",
    "flavors": "flavors",
    "slots": "static_slots",
}
_OF_BILLING = {"billing": "period", "billing_minimum": "least"}
_OF_LIMITS = tuple(one.name for one in fields(core.Limits) if one.name in model.Limits.model_fields)
_OF_TIMINGS = tuple(
    one.name for one in fields(core.Timings) if one.name in model.Timings.model_fields and one.name != "cycle"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run a pool: its name, the policy, the clouds, and who decides.

    `decider` makes what decides, anew for each simulation and knowing the jobs to come, which only another
    system's rule may use (its site would know them); `rival` is True for such a one. `cycle` is how often it
    looks, in seconds; None is as often as is asked for.
    """

    name: str
    policy: Policy
    clouds: Mapping[str, SimCloud]
    decider: Callable[[Sequence[Arrival]], Decide] = field(default=lambda _jobs: core_plan)
    rival: bool = False
    cycle: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """A key and the values that it is given, each with the change of a policy that it means."""

    key: str
    values: tuple[tuple[str, Change], ...]


def swept(base: Setting, axes: Sequence[Axis]) -> list[Setting]:
    """The setting in every combination of the axes' values, named by them.

    Raises UsageError where there are too many, or where one contradicts itself.
    """
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > MOST:
        raise UsageError(
            f"--sweep makes {count} settings; at most {MOST} are compared: leave out some values"
        )
    keys = [axis.key for axis in axes]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UsageError(f"--sweep {twice} is there twice; name all its values at once: {twice}=A,B,C")
    return [_with(base, chosen) for chosen in itertools.product(*(axis.values for axis in axes))]


def _with(base: Setting, chosen: Iterable[tuple[str, Change]]) -> Setting:
    policy, names = base.policy, []
    for name, change in chosen:
        policy = change(policy)
        names.append(name)
    for worker in policy.classes.values():
        if worker.max_machines is not None and worker.min_machines > worker.max_machines:
            raise UsageError(
                f"--sweep: {', '.join(names)}: class {worker.name} would have to have at least "
                f"{worker.min_machines} and at most {worker.max_machines} machines"
            )
    return replace(base, name=", ".join(names) or base.name, policy=policy)


def axis(text: str, policy: Policy) -> Axis:
    """What `KEY=VALUE,VALUE,…` asks for, KEY as in updraft.toml.

    A key of a worker class alone means every class. `none` is no value, `a+b` is a list. Raises UsageError
    that names the key or value that is wrong.
    """
    key, equals, listed = text.partition("=")
    key = key.strip()
    texts = [part.strip() for part in listed.split(",")]
    if not equals or not key or not all(texts):
        raise UsageError(f'"{text}" is no sweep; write it as in idle_limit=2m,10m,40m')
    if twice := next((one for one in texts if texts.count(one) > 1), None):
        raise UsageError(f"--sweep {key}: {twice} is there twice")
    make = _changer(key, policy)
    return Axis(key, tuple((f"{key}={one}", make(one)) for one in texts))


def _changer(key: str, policy: Policy) -> Callable[[str], Change]:
    """What turns a value of this key into a change."""
    match key.split("."):
        case [name] if name in _OF_A_CLASS:
            return lambda text: _of_classes(tuple(policy.classes), name, key, text)
        case ["classes", worker, name] if worker in policy.classes and name in _OF_A_CLASS:
            return lambda text: _of_classes((worker,), name, key, text)
        case ["limits", name] if name in _OF_LIMITS:
            return lambda text: _of_limits(name, key, text)
        case ["clouds", cloud, "limits", name] if name in _OF_LIMITS and cloud in _clouds(policy):
            return lambda text: _of_cloud(cloud, name, key, text)
        case ["clouds", cloud, name] if name in _OF_BILLING and cloud in _clouds(policy):
            return lambda text: _of_billing(cloud, name, key, text)
        case ["timings", name] if name in _OF_TIMINGS:
            return lambda text: _of_timings(name, key, text)
    raise UsageError(_unknown(key, policy))


def _unknown(key: str, policy: Policy) -> str:
    from difflib import get_close_matches

    if key in ("cycle", "timings.cycle"):
        return "--sweep can't change the cycle; it is the same for all settings: --cycle 60s"
    known = [
        *_OF_A_CLASS,
        *(f"limits.{name}" for name in _OF_LIMITS),
        *(f"timings.{name}" for name in _OF_TIMINGS),
        *(f"classes.{worker}.{name}" for worker in policy.classes for name in _OF_A_CLASS),
        *(f"clouds.{cloud}.limits.{name}" for cloud in _clouds(policy) for name in _OF_LIMITS),
        *(f"clouds.{cloud}.{name}" for cloud in _clouds(policy) for name in _OF_BILLING),
    ]
    alike = [one for one in known if one.endswith(f".{key}") or one.startswith(key)]
    close = alike or get_close_matches(key, known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close[:2])}?" if close else f"there are {', '.join(known[:16])}, …"
    return f'--sweep: "{key}" is no setting that a simulation knows; {hint}'


def _clouds(policy: Policy) -> list[str]:
    return sorted({cloud for worker in policy.classes.values() for cloud in worker.clouds})


def _of_classes(names: Sequence[str], key: str, shown: str, text: str) -> Change:
    value = _checked(WorkerClass, key, shown, text, image="image")
    if key == "slots" and value == "partitionable":
        value = None

    def change(policy: Policy) -> Policy:
        changed = {name: replace(policy.classes[name], **{_OF_A_CLASS[key]: value}) for name in names}
        return replace(policy, classes={**policy.classes, **changed})

    return change


def _of_limits(key: str, shown: str, text: str) -> Change:
    value = _checked(model.Limits, key, shown, text)
    return lambda policy: replace(policy, limits=replace(policy.limits, **{key: value}))


def _of_cloud(cloud: str, key: str, shown: str, text: str) -> Change:
    value = _checked(model.Limits, key, shown, text)

    def change(policy: Policy) -> Policy:
        limits = replace(policy.cloud_limits.get(cloud, core.Limits()), **{key: value})
        return replace(policy, cloud_limits={**policy.cloud_limits, cloud: limits})

    return change


def _of_billing(cloud: str, key: str, shown: str, text: str) -> Change:
    told = _checked(model.CloudTable, key, shown, text, driver="fake")
    made = getattr(model.CloudTable.model_construct(driver="fake", **{key: told}).billed, _OF_BILLING[key])

    def change(policy: Policy) -> Policy:
        rule = policy.rule(cloud)
        changed = replace(rule, billing=replace(rule.billing, **{_OF_BILLING[key]: made}))
        return replace(policy, clouds={**policy.clouds, cloud: changed})

    return change


def _of_timings(key: str, shown: str, text: str) -> Change:
    value = _checked(model.Timings, key, shown, text)
    return lambda policy: replace(policy, timings=replace(policy.timings, **{key: value}))


def _checked(part: type[BaseModel], key: str, shown: str, text: str, **others: Any) -> Any:
    """The value as updraft.toml would take it."""
    try:
        return getattr(part.model_validate({**others, key: _value(text)}), key)
    except ValidationError as error:
        what = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"--sweep {shown}: {text}: {what[:1].lower()}{what[1:]}") from error


def _value(text: str) -> Any:
    if text.lower() == "none":
        return None
    if "+" in text[1:]:
        return text.split("+")
    for form in (int, float):
        try:
            return form(text)
        except ValueError:
            continue
    return text


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Which points no other is better than in one way and as good in the other; less is better in both.

    Their indices, by the first coordinate.
    """
    best, found = float("inf"), []
    for index in sorted(range(len(points)), key=lambda one: points[one]):
        if points[index][1] < best:
            best = points[index][1]
            found.append(index)
    return found
