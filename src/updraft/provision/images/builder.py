"""A worker image, made of a machine: launched, prepared, tried by a job, cleaned, and only then kept."""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from updraft.clouds.base import Machines
from updraft.clouds.imaging import MachineImage
from updraft.condor.base import Pool
from updraft.condor.support.trial import TrialOutcome
from updraft.core.model import DrainMode, Slot
from updraft.errors import DrainRefused, ImageError, PoolError
from updraft.provision.images.making import LIFETIME, Deadlines, Maker, Order, pool_name
from updraft.provision.images.transfer import Place
from updraft.provision.images.waiting import Watch

__all__ = ["LIFETIME", "Builder", "Deadlines", "Order", "Trying", "cheapest", "pool_name", "tags_of_builder"]

_POOL_DEADLINE = 20.0


class Trying(Protocol):
    """The job that tries the machine: see `condor.trial.Trial`."""

    def submit(self, instance: str, script: str) -> None: ...

    def outcome(self) -> TrialOutcome: ...


class Builder(Maker):
    """Makes images of workers in one cloud; `pool` is that of `pool_name`, too."""

    def __init__(
        self,
        place: Place,
        machines: Machines,
        pool: Pool,
        watch: Watch,
        deadlines: Deadlines | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(place, machines, watch, deadlines, now)
        self._pool = pool

    def build(self, order: Order, trial: Trying) -> MachineImage:
        """The image, ready. Raises what went wrong; its machine is ended in any case, half an image too."""
        self._place.free(order.name)
        with self._machine(order.request) as machine:
            slots = self._joined(machine)
            if order.script:
                self._try(machine, order.script, trial)
            self._clean(machine, slots)
            return self._keep(machine, order)

    # ------------------------------------------------------------------------------------------- steps

    def _joined(self, machine: str) -> tuple[Slot, ...]:
        def look() -> tuple[Slot, ...] | None:
            self._alive(machine)
            self._fit(machine)
            with contextlib.suppress(PoolError):
                seen = self._pool.slots(_POOL_DEADLINE).view.slots
                return tuple(slot for slot in seen if slot.instance_id == machine) or None
            return None

        found = self._watch.until(look, self._deadlines.boot, f"machine {machine} boots and joins the pool")
        self._watch.say("it is prepared, and in the pool")
        return found

    def _try(self, machine: str, script: str, trial: Trying) -> None:
        def look() -> TrialOutcome | None:
            self._alive(machine)
            seen = trial.outcome()
            return seen if seen.over else None

        trial.submit(machine, script)
        self._watch.say("a job tries it")
        seen = self._watch.until(look, self._deadlines.trial, "the trial job runs")
        if not seen.good:
            raise ImageError(f"the trial job failed: {seen.text}")
        self._watch.say(f"the trial job is done: {seen.text}")

    def _clean(self, machine: str, slots: tuple[Slot, ...]) -> None:
        def empty() -> bool | None:
            with contextlib.suppress(DrainRefused):  # its claim goes a moment after the job
                self._pool.drain(slots, DrainMode.EMPTY, "updraft image: it is cleaned", _POOL_DEADLINE)
                return True
            return None

        self._watch.until(empty, self._deadlines.clean, f"machine {machine} is drained")
        self._watch.say("it is drained, and being cleaned")
        self._watch.until(
            lambda: self._fit(machine) or None, self._deadlines.clean, f"machine {machine} is cleaned"
        )
        with contextlib.suppress(PoolError):
            self._pool.forget([slot.name for slot in slots], _POOL_DEADLINE)


def cheapest(machines: Machines, wanted: Callable[[str], bool], zone: str = "") -> tuple[str, str]:
    """Flavor and zone of the cheapest on-demand offer among those wanted; a price not known comes last."""
    offers = [
        one
        for one in machines.offers()
        if one.market == "on-demand" and wanted(one.flavor) and zone in ("", one.zone) and one.left != 0
    ]
    if not offers:
        raise ImageError("the cloud sells no machine of the class's flavors now; say another with --flavor")
    best = min(offers, key=lambda one: (one.price is None, one.price or 0.0, one.resources.cpus, one.zone))
    return best.flavor, best.zone


def tags_of_builder(worker_class: str) -> Mapping[str, str]:
    """The tags of such a machine beyond its pool's and its launch's."""
    from updraft.clouds.base import TAG_CLASS

    return {TAG_CLASS: worker_class}
