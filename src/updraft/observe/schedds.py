"""The pool's schedds: who they are, what each says, and how dear it is to ask."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from updraft.condor.base import Pool
from updraft.core.model import CollectorView, Known, Reason, ScheddView, Source, Unknown
from updraft.observe.sources import Asker, Asking

ANY = "*"  # stands for schedds that nobody could name: their demand is unknown, not nothing


@dataclass(slots=True)
class _Cost:
    """How long a schedd's latest two answers took. One slow answer says little: it may have been held up."""

    asked_at: float | None = None
    took: tuple[float, ...] = ()

    def note(self, asked_at: float, took: float) -> None:
        """The answer to the question asked then; once for each."""
        if asked_at != self.asked_at:
            self.asked_at, self.took = asked_at, (*self.took[-1:], took)

    @property
    def usual(self) -> float:
        """Seconds that an answer takes when nothing unusual holds it up; the first one tells nothing of that:
        the process that asks was only starting then.
        """
        return min(self.took) if len(self.took) > 1 else 0.0


class Schedds:
    """Asks every schedd that is, or lately was, in the collector's list.

    `seen` maps each to when it was last in that list; `share` is the part of its time that asking may take.
    """

    def __init__(self, deadline: float, share: float, seen: Mapping[str, float], asking: Asking) -> None:
        self._deadline = deadline
        self._share = share
        self._asking = asking
        self._names: Asker[tuple[str, ...]] = Asker("the collector", stale_after=deadline, asking=asking)
        self._askers: dict[str, Asker[ScheddView]] = {}
        self._costs: dict[str, _Cost] = {}
        self._missing: dict[str, float] = {}
        self.seen: dict[str, float] = dict(seen)

    @property
    def pause(self) -> float:
        """Seconds between two questions that keep the dearest schedd that answers below its share."""
        answering = (name for name in self._costs if name in self.seen and not self._askers[name].failing)
        return max((self._costs[name].usual for name in answering), default=0.0) / self._share

    def ask_names(self, pool: Pool, deadline: float, now: float) -> None:
        """Begin to ask the collector for the list."""
        self._names.ask(lambda: pool.schedds(deadline), now)

    def answers(
        self,
        pool: Pool,
        *,
        wanted: float,
        running: bool,
        collector: Source[CollectorView],
        young: float,
        clock: Callable[[], float],
    ) -> dict[str, Source[ScheddView]]:
        """What each schedd says. One that left the list is unknown for `wanted` seconds, then forgotten."""
        names = self._names.answer(self._deadline, clock())
        now = clock()
        listed = set(names.value) if isinstance(names, Known) else set(self.seen)
        if isinstance(names, Known):
            self._note(listed, now, wanted)
        begun = now
        for name in sorted(listed):
            self._ask(pool, name, running=running, now=now)
        found: dict[str, Source[ScheddView]] = {}
        for name in sorted(listed):
            asker = self._askers[name]
            found[name] = asker.answer(self._deadline - (clock() - begun), clock())
            if not asker.failing and asker.asked_at is not None:
                self._costs.setdefault(name, _Cost()).note(asker.asked_at, asker.took)
        for name in sorted(set(self.seen) - listed):
            found[name] = self._vanished(name)
        return found or self._nobody(names, collector, now, young)

    def _note(self, listed: set[str], now: float, wanted: float) -> None:
        for name in listed:
            self.seen[name] = now
            self._missing.pop(name, None)
        for name in set(self.seen) - listed:
            since = self._missing.setdefault(name, self.seen[name])
            if now - since > wanted:
                del self.seen[name], self._missing[name]
                self._askers.pop(name, None)
                self._costs.pop(name, None)

    def _ask(self, pool: Pool, name: str, *, running: bool, now: float) -> None:
        asker = self._askers.get(name)
        if asker is None:
            asker = self._askers[name] = Asker(
                f"schedd {name}", stale_after=2 * self._deadline, asking=self._asking
            )
        # A schedd that can't answer is not helped by being asked all the time, and one that was silent for a
        # moment is to be heard soon: the rest grows with the silence. (One that is dear and answers slows the
        # whole loop down instead, see `pause`: demand is never older than the slots.)
        if asker.failing and asker.asked_at is not None:
            rest = min(asker.took / self._share, max(asker.took, asker.asked_at - asker.silent_since))
            if now < asker.asked_at + rest:
                return
        asker.ask(partial(pool.demand, name, running=running, deadline=self._deadline), now)

    def _vanished(self, name: str) -> Unknown[ScheddView]:
        since = self._missing.get(name, self.seen[name])
        state = self._askers[name].state if name in self._askers else None
        last = state if isinstance(state, Known) else state.last if state is not None else None
        return Unknown(
            Reason("schedd-vanished", f"schedd {name} is no longer in the collector's list"), since, last
        )

    def _nobody(
        self, names: Source[tuple[str, ...]], collector: Source[CollectorView], now: float, young: float
    ) -> dict[str, Source[ScheddView]]:
        """No schedd at all: only an old-enough collector can say that, and then there is no demand."""
        if isinstance(names, Unknown):
            return {ANY: Unknown(names.error, names.since)}
        if not isinstance(collector, Known) or now - collector.value.started < young:
            text = "the collector names no schedd, and is too young to know"
            return {ANY: Unknown(Reason("no-schedd-yet", text), now)}
        return {}
