"""The figures of a report, as they are added up, and as people and programs are told them."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

from updraft.config.tables.usage import Usage
from updraft.documents import Document

HOUR = 3600.0
Row = dict[str, Any]


@dataclass(slots=True)
class UsageFigures:
    """Sums over machines and days; quantities of cores and GPUs are multiplied by seconds.

    `paid` is what was there, or what somebody is charged with, of which `used` was claimed and `idle` was
    not. Of `unknown` nobody knows what it did, of `doubtful` (which isn't paid) whether it was there at all.
    `cost` includes `idle_cost`. `kwh` and `co2` (in grams) are None where some part of them isn't known.
    `billed` is what an imported bill says, None where there is none.
    """

    machine_days: int = 0
    alive: float = 0.0
    paid: float = 0.0
    used: float = 0.0
    idle: float = 0.0
    unknown: float = 0.0
    doubtful: float = 0.0
    paid_gpus: float = 0.0
    used_gpus: float = 0.0
    jobs: int = 0
    lost: float = 0.0
    cost: float = 0.0
    idle_cost: float = 0.0
    unpriced: float = 0.0
    kwh: float | None = 0.0
    co2: float | None = 0.0
    billed: float | None = None

    def add(self, more: "UsageFigures") -> None:
        """Add these too."""
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(more, one.name)
            if one.name == "billed":
                mine, theirs = (mine, theirs or 0.0) if mine is not None else (theirs, 0.0)
            setattr(self, one.name, None if mine is None or theirs is None else mine + theirs)

    def bill(self, amount: float) -> None:
        """Add what a bill says."""
        self.billed = (self.billed or 0.0) + amount


def place(row: Row, settings: Usage) -> UsageFigures:
    """The figures of machines, of a sum of their records."""
    idle = max(0.0, row["room"] - row["unseen_room"] - row["core_seconds"])
    found = UsageFigures(
        machine_days=row["machines"],
        alive=row["alive"],
        paid=row["room"],
        used=row["core_seconds"],
        idle=idle,
        unknown=row["unseen_room"],
        doubtful=row["doubtful_room"],
        paid_gpus=row["gpu_room"],
        used_gpus=row["gpu_seconds"],
        jobs=row["jobs"],
        lost=row["lost"],
        cost=row["cost"],
        idle_cost=row["cost"] * idle / max(row["room"], row["core_seconds"], 1e-9),
        unpriced=row["unpriced"],
    )
    return with_energy(found, row["cloud"], settings)


def person(row: Row, settings: Usage) -> UsageFigures:
    """The figures of a user, of a sum of what that one had of machines; with idle cores if users pay."""
    charged = settings.idle_paid_by == "users"
    idle = row["idle_core_seconds"] if charged else 0.0
    found = UsageFigures(
        machine_days=row["machines"],
        paid=row["core_seconds"] + idle,
        used=row["core_seconds"],
        idle=idle,
        used_gpus=row["gpu_seconds"],
        jobs=row["jobs"],
        lost=row["lost"],
        cost=row["cost"] + (row["idle_cost"] if charged else 0.0),
        idle_cost=row["idle_cost"] if charged else 0.0,
        unpriced=row["unpriced"],
    )
    return with_energy(found, row["cloud"], settings)


def rest(whole: UsageFigures, parts: UsageFigures) -> UsageFigures:
    """What of the whole is in none of the parts: what nobody used, or is charged with."""
    return UsageFigures(
        machine_days=0,
        paid=max(0.0, whole.paid - parts.paid),
        idle=max(0.0, whole.idle - parts.idle),
        unknown=whole.unknown,
        doubtful=whole.doubtful,
        cost=_above(whole.cost - parts.cost, whole.cost),
        idle_cost=_above(whole.idle_cost - parts.idle_cost, whole.cost),
        unpriced=_above(whole.unpriced - parts.unpriced, whole.unpriced),
        kwh=None if whole.kwh is None or parts.kwh is None else max(0.0, whole.kwh - parts.kwh),
        co2=None if whole.co2 is None or parts.co2 is None else max(0.0, whole.co2 - parts.co2),
        billed=None if whole.billed is None else whole.billed - (parts.billed or 0.0),
    )


def _above(left: float, whole: float) -> float:
    """What is left, without what is only the inexactness of a sum."""
    return left if left > 1e-9 * whole else 0.0


def with_energy(figures: UsageFigures, cloud: str, settings: Usage) -> UsageFigures:
    """The same with the energy that its cores took in this cloud, and the CO₂ of that, as the site says."""
    own = settings.clouds.get(cloud)
    watts, grams = settings.watts_per_core, settings.co2_per_kwh
    if own is not None:
        watts = watts if own.watts_per_core is None else own.watts_per_core
        grams = grams if own.co2_per_kwh is None else own.co2_per_kwh
    kwh = None if watts is None else figures.paid / HOUR * watts / 1000
    figures.kwh = kwh
    figures.co2 = None if kwh is None or grams is None else kwh * grams
    return figures


class ToldFigures(Document):
    """The figures in hours, and what can't be said as null."""

    currency: Annotated[str, "That of the costs; empty where the site doesn't say it."]
    machine_days: Annotated[int, "Records of a machine and a day that it is the sum of."]
    machine_hours: Annotated[float, "Hours that its machines were there; 0 for users and groups."]
    paid_core_hours: Annotated[float, "Cores that were there, or that the user is charged with."]
    used_core_hours: Annotated[float, "Of these, claimed."]
    idle_core_hours: Annotated[float, "Of these, claimed by nobody."]
    unknown_core_hours: Annotated[float, "Of these, nobody knows what they did: no controller looked."]
    doubtful_core_hours: Annotated[float, "Not among these: nobody knows whether they were there."]
    paid_gpu_hours: Annotated[float, "GPUs that were there; 0 for users and groups."]
    used_gpu_hours: Annotated[float, "GPUs that were claimed."]
    jobs: Annotated[int, "Jobs begun."]
    lost_core_hours: Annotated[float, "Work that was lost with its machine, at most."]
    cost: Annotated[float | None, "At list prices; null where no price is known."]
    idle_cost: Annotated[float | None, "Of this, for idle cores."]
    unpriced_machine_hours: Annotated[float, "Hours of machines whose price isn't known: not in the cost."]
    billed: Annotated[float | None, "What an imported bill says, or null."]
    efficiency: Annotated[float | None, "Used ÷ paid, of what is known; or null."]
    paid_per_used: Annotated[float | None, "Paid ÷ used, of what is known; or null."]
    kwh: Annotated[float | None, "Energy, by the site's coefficients; or null."]
    co2_kg: Annotated[float | None, "CO₂ of that, in kg; or null."]


def told(figures: UsageFigures, currency: str) -> ToldFigures:
    """The figures as a document has them."""
    known = figures.paid - figures.unknown
    nothing = figures.cost == 0 and figures.unpriced > 0
    return ToldFigures(
        currency=currency,
        machine_days=figures.machine_days,
        machine_hours=_hours(figures.alive),
        paid_core_hours=_hours(figures.paid),
        used_core_hours=_hours(figures.used),
        idle_core_hours=_hours(figures.idle),
        unknown_core_hours=_hours(figures.unknown),
        doubtful_core_hours=_hours(figures.doubtful),
        paid_gpu_hours=_hours(figures.paid_gpus),
        used_gpu_hours=_hours(figures.used_gpus),
        jobs=figures.jobs,
        lost_core_hours=_hours(figures.lost),
        cost=None if nothing else round(figures.cost, 6),
        idle_cost=None if nothing else round(figures.idle_cost, 6),
        unpriced_machine_hours=_hours(figures.unpriced),
        billed=None if figures.billed is None else round(figures.billed, 6),
        efficiency=round(min(1.0, figures.used / known), 6) if known > 0 else None,
        paid_per_used=round(known / figures.used, 6) if figures.used > 0 else None,
        kwh=None if figures.kwh is None else round(figures.kwh, 6),
        co2_kg=None if figures.co2 is None else round(figures.co2 / 1000, 6),
    )


def _hours(seconds: float) -> float:
    return round(seconds / HOUR, 6)
