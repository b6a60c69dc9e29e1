"""What `updraft.toml` says of annexes that ordinary users may ask for: [annexes], keys of [users.NAME]."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from updraft.config.tables.part import Part
from updraft.config.tables.spending import limits_of
from updraft.config.values.checks import tuple_of_one
from updraft.config.values.units import Duration
from updraft.core import settings as core
from updraft.core.model import BudgetScope

SOCKET = "/run/updraft/annex.sock"
_Some = Annotated[tuple[str, ...], BeforeValidator(tuple_of_one)]
_Count = Annotated[int, Field(ge=0)] | None
_Money = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None


class Annexes(Part):
    """Annexes that ordinary users may ask for themselves, and what those of each user may come to.

    A user is held to the largest and dearest machines that could be bought for what was asked. The limits of
    the pool and the caps of the user hold besides.
    """

    users: _Some = ()
    """Who may have annexes of their own: names of this machine's users, or patterns (`phys*`). Beside them,
    everybody whose [users.NAME] has one of the keys that begin with `annex_`. Nobody: no socket is opened."""
    machines: _Count = None
    """Machines of all annexes of one user together, at one time."""
    cores: _Count = None
    """Cores of all annexes of one user together, at one time."""
    cost_per_hour: _Money = None
    """What all annexes of one user together may cost per hour, in the unit of the prices."""
    cost_per_day: _Money = None
    """What all annexes of one user together may cost in a UTC day; see `cost_per_day` in [limits]."""
    cost_per_month: _Money = None
    """The same of a month."""
    longest: Annotated[Duration, Field(gt=0)] = 86400.0
    """How long a user's lease may be, counted from when it is asked for or extended."""
    classes: Annotated[_Some, Field(min_length=1)] = ("*",)
    """Worker classes that annexes of users may be of, as names or patterns."""
    socket: Annotated[Path, Field(strict=False)] = Path(SOCKET)
    """Where users' requests are taken. `updraft annex` of users who can't read this file looks at the default
    place, or where UPDRAFT_ANNEX_SOCKET says."""

    @model_validator(mode="after")
    def _has_a_ceiling(self) -> "Annexes":
        if self.users and self.machines is None and self.cores is None and self.cost_per_hour is None:
            raise ValueError(
                "users may have annexes without any ceiling; set machines, cores or cost_per_hour"
            )
        return self


class AnnexKeys(Part):
    """What one user's annexes may come to, where it isn't what [annexes] says."""

    annex_machines: _Count = None
    """Machines of all annexes of this user together, in place of `machines` in [annexes]."""
    annex_cores: _Count = None
    """Cores of all annexes of this user together, in place of `cores` in [annexes]."""
    annex_cost_per_hour: _Money = None
    """What they may cost per hour together, in place of `cost_per_hour` in [annexes]."""
    annex_cost_per_day: _Money = None
    """What they may cost in a UTC day, in place of `cost_per_day` in [annexes]."""
    annex_cost_per_month: _Money = None
    """The same of a month."""


def allowances(annexes: Annexes, users: Mapping[str, AnnexKeys]) -> dict[str, core.AnnexAllowance]:
    """By user or pattern, the first that fits being the one that counts: users' own tables come first."""
    found: dict[str, core.AnnexAllowance] = {}
    for name, keys in users.items():
        own = (keys.annex_machines, keys.annex_cores, keys.annex_cost_per_hour)
        money = (keys.annex_cost_per_day, keys.annex_cost_per_month)
        if any(value is not None for value in (*own, *money)):
            found[name] = _allowance(annexes, *own)
    for name in annexes.users:
        found.setdefault(name, _allowance(annexes, None, None, None))
    return found


def annex_spending(annexes: Annexes, users: Mapping[str, AnnexKeys]) -> Iterator[core.SpendingLimit]:
    """Budgets of a day or month of users' annexes, in their order: the first that fits a user counts."""
    tables = {name: (keys.annex_cost_per_day, keys.annex_cost_per_month) for name, keys in users.items()}
    for name in allowances(annexes, users):
        day, month = tables.get(name, (None, None))
        day = annexes.cost_per_day if day is None else day
        month = annexes.cost_per_month if month is None else month
        yield from limits_of(BudgetScope.ANNEXES, name, day, month)


def _allowance(
    annexes: Annexes, machines: int | None, cores: int | None, cost: float | None
) -> core.AnnexAllowance:
    return core.AnnexAllowance(
        machines=annexes.machines if machines is None else machines,
        cores=annexes.cores if cores is None else cores,
        cost_per_hour=annexes.cost_per_hour if cost is None else cost,
        longest=annexes.longest,
        classes=annexes.classes,
    )
