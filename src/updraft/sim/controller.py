"""The daemon's own observer, preparer and actor in virtual time, in which no question takes any."""

from collections.abc import Callable, Mapping
from typing import cast

from updraft.act import Actor, Lanes
from updraft.clouds.cloud import Cloud
from updraft.condor.base import Pool
from updraft.core.model import Launch, Observation, Plan, Snapshot
from updraft.core.settings import Policy
from updraft.daemon.preparing import PACE, Matcher, Preparer
from updraft.ledger import Ledger
from updraft.observe import VIRTUAL, Observer
from updraft.sim.world.memory import MemoryLedger

Decide = Callable[[Snapshot, Policy], Plan]


def _no_step(_name: str) -> None:
    """Nothing happens between two side effects."""


class Controller:
    """One controller, from its start to its end: it knows what the ledger knows, and what it has seen since.

    `step` is called between any two side effects of the actor; what it raises ends the controller.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        pool: Pool,
        clouds: Mapping[str, Cloud],
        ledger: MemoryLedger | Ledger,
        clock: Callable[[], float],
        matcher: Matcher,
        step: Callable[[str], None] = _no_step,
    ) -> None:
        self._policy = policy
        self._pool = pool
        self._clouds = clouds
        self._ledger = ledger
        self._observer = Observer(policy=policy, pool=pool, clouds=clouds, ledger=ledger, asking=VIRTUAL)
        self._preparer = Preparer(ledger=ledger, matcher=matcher, stopwatch=VIRTUAL.stopwatch)
        self._actor = Actor(
            policy=policy,
            pool=pool,
            clouds=clouds,
            user_data=_no_user_data,
            ledger=cast(Ledger, ledger),
            clock=clock,
            lanes=Lanes(width=0),
            step=step,
        )

    def reconfigure(self, policy: Policy) -> None:
        """Go on with another policy, as after a changed configuration."""
        self._policy = policy
        self._observer.reconfigure(policy, self._pool, self._clouds)
        self._actor.reconfigure(policy, self._pool, self._clouds, _no_user_data)

    def look(self, now: float) -> Observation:
        """Ask every source."""
        return self._observer.look(now)

    def look_at_clouds(self, now: float) -> None:
        """Ask only the clouds, where nothing is to be decided: they count their calls."""
        self._observer.look_at_clouds(now)

    def decide(self, seen: Observation, decide: Decide) -> tuple[Snapshot, Plan]:
        """What is decided about, with what was learned of it written down, and the plan."""
        snapshot = self._preparer.at_once(seen, self._policy).snapshot
        for kind, text in self._preparer.fresh.items():
            self._ledger.learn(kind, text, seen.now)
        self._preparer.fresh.clear()
        self._ledger.note("schedds", {"seen": self._observer.schedds_seen}, seen.now)
        self._ledger.note(PACE, self._preparer.pace_note, seen.now)
        made = decide(snapshot, self._policy)
        self._observer.questions = made.questions
        return snapshot, made

    def carry_out(self, plan: Plan, snapshot: Snapshot) -> None:
        """Do what the plan says."""
        self._actor.carry_out(plan, snapshot)


def _no_user_data(_launch: Launch, _token: str) -> bytes:
    return b""
