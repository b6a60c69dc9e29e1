"""Two controllers never act for one pool, on whatever hosts: each advertises itself, and the oldest acts.

The collector is the arbiter, and the only clock: how old a controller is, and whether it lives, is counted in
what the collector says it heard, so that a host with a wrong clock can't push another one aside. A controller
acts only where a fresh answer of the collector shows its own ad and none older; it has waited before that for
two announcement intervals, in which an older one would have been seen. A controller whose ad may have lapsed,
or was forgotten by a collector started anew, is new again. A collector that has just started knows nobody:
newcomers wait for three intervals more then.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from updraft.condor.base import ControllerAd, Pool
from updraft.core.model import Reason
from updraft.errors import PoolError, StateLost

STARTING = ("not-announced", "listening")
"""The reasons not to act that pass by themselves, soon after the start."""
WATCHES = Reason("watching", "updraft only watches ([pool] act = false), and touches nothing")
"""Why a controller never acts that isn't to."""
_NOT_YET = float(2**40)  # younger than every controller that knows its age


@dataclass(frozen=True, slots=True)
class Rhythm:
    """In seconds: how often an ad is renewed, how long it lives, and how long a call may take.

    An ad lives longer than a cycle's actions may take.
    """

    interval: float = 5.0
    lifetime: float = 40.0
    deadline: float = 5.0


class LeaderElection:
    """Announces this controller, and says whether it may act. Its thread renews the ad meanwhile.

    `identity` is the pool's. `barred` says why this controller may never act: then it isn't announced either,
    since a copy of a controller would speak under its name. `stopwatch` is a clock that nobody sets, and that
    goes on while the host sleeps. `holds` says whether the state directory that it is named after is still
    its own: a controller of which it was taken away says no more under that name. `ahead` is by how many
    seconds this host's clock was ahead of the collector's when that heard of it last, as far as is known; see
    `precision`.
    """

    def __init__(
        self,
        pool: Pool,
        controller: str,
        host: str,
        clock: Callable[[], float],
        rhythm: Rhythm | None = None,
        *,
        identity: str = "",
        barred: Reason | None = None,
        stopwatch: Callable[[], float] | None = None,
        holds: Callable[[], bool] = lambda: True,
    ) -> None:
        self.pool = pool
        self.id = controller
        self.host = host
        self.identity = identity
        self.barred = barred
        self.rhythm = rhythm or Rhythm()
        self._clock = clock
        self._stopwatch = stopwatch or clock
        self._holds = holds
        self._lock = threading.Lock()
        self._since = _NOT_YET
        self._acted = False
        self._renewed: float | None = None
        self._said_at = 0.0  # by the wall clock
        self._alive = self._stopwatch()
        self.ahead: float | None = None
        self._quit = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def precision(self) -> float:
        """By how many seconds `ahead` may be wrong: a collector may not have taken up the latest ads yet."""
        return self.rhythm.lifetime

    def beat(self) -> None:
        """Renew the ad. Raises PoolError where the collector doesn't take it, StateLost as `standing`."""
        self._keep()
        with self._lock:
            now, passed = self._clock(), self._stopwatch()
            if self._renewed is not None and self._lapsed(passed - self._renewed):
                self._since, self._acted = _NOT_YET, False
            if self._since == _NOT_YET:
                self._come_of_age()
            self.pool.announce(self._ad(now), self.rhythm.lifetime, self.rhythm.deadline)
            self._renewed, self._said_at = passed, now

    def _lapsed(self, silence: float) -> bool:
        """Whether others may have taken this controller for gone in so many seconds without a renewal.

        An ad ends before its time where the collector was started anew, and newcomers wait there only for
        three intervals.
        """
        if silence <= 2 * self.rhythm.interval:
            return False
        return (
            silence > self.rhythm.lifetime or self._own(self.pool.controllers(self.rhythm.deadline)) is None
        )

    def _come_of_age(self) -> None:
        """Go on at the age of the ad that an earlier process left, or be born in the collector's time."""
        left = self._own(self.pool.controllers(self.rhythm.deadline))
        self.pool.announce(self._ad(self._clock()), self.rhythm.lifetime, self.rhythm.deadline)
        own = self._own(self.pool.controllers(self.rhythm.deadline))
        if own is None:
            return  # not shown yet: at the next beat
        self._since = own.heard
        # An ad that the others took for dead by now is no claim: one of them may be acting.
        if left is not None and left.since < _NOT_YET and own.heard - left.heard <= self.rhythm.lifetime:
            self._since = left.since

    def standing(self, collector_started: float | None) -> Reason | None:
        """None where this controller may act now; else why it waits, and for whom.

        Raises StateLost where its state directory was taken away.
        """
        self._alive = self._stopwatch()
        self._keep()
        if self.barred is not None:
            return self.barred
        try:
            if self._renewed is None or self._alive - self._renewed >= self.rhythm.interval:
                self.beat()
            ads = self.pool.controllers(self.rhythm.deadline)
        except PoolError as error:
            return Reason(
                "no-collector", f"the collector can't say who acts for this pool, so nobody does: {error}"
            )
        own = self._own(ads)
        self.ahead = None if own is None or self._renewed is None else self._said_at - own.heard
        if own is None or self._since == _NOT_YET:
            return Reason("not-announced", "its own ad is not in the collector yet")
        living = [ad for ad in ads if own.heard - ad.heard <= self.rhythm.lifetime]
        first = min(living, key=lambda ad: (ad.since, ad.id))
        if first.id != self.id:
            self._acted = False
            other = first.identity not in ("", self.identity)
            whose = f"another pool of this name (identity {first.identity})" if other else "this pool"
            text = f"the controller {first.id} on {first.host} acts for {whose}: this one waits"
            return Reason("second-controller", text)
        return self._ripe(own.heard, collector_started)

    def _keep(self) -> None:
        if not self._holds():
            text = "the state directory was removed or replaced while this controller ran"
            self.barred = Reason("state-lost", text)
            raise StateLost(f"{text}: it acts no more, and has to be started again")

    def _ripe(self, heard: float, collector_started: float | None) -> Reason | None:
        if not self._acted:
            ready = self._since + 2 * self.rhythm.interval
            if collector_started is not None:
                ready = max(ready, collector_started + 3 * self.rhythm.interval)
            if heard < ready:
                text = f"it waits {ready - heard:.0f} s more, in case another controller is there"
                return Reason("listening", text)
        self._acted = True
        return None

    def _ad(self, now: float) -> ControllerAd:
        return ControllerAd(self.id, self.host, self._since, now, self.identity)

    def _own(self, ads: tuple[ControllerAd, ...]) -> ControllerAd | None:
        return next((ad for ad in ads if ad.id == self.id), None)

    # ------------------------------------------------------------------------------------- its thread

    def start(self) -> None:
        """Renew the ad from a thread from now on, as long as the loop moves."""
        if self.barred is not None:
            return
        self._thread = threading.Thread(target=self._run, daemon=True, name="updraft-election")
        self._thread.start()

    def _run(self) -> None:
        while not self._quit.wait(self.rhythm.interval):
            # A loop that hangs must not keep others from acting for ever.
            if self._stopwatch() - self._alive > 10 * self.rhythm.lifetime:
                continue
            try:
                self.beat()
            except PoolError:
                continue  # `standing` says so, with the reason, when it matters
            except StateLost:
                return

    def stop(self) -> None:
        """Stop renewing, and withdraw the ad so that another controller need not wait for its end."""
        self._quit.set()
        if self._thread is not None:
            self._thread.join(2 * self.rhythm.deadline)
        if self.barred is not None:
            return
        try:
            with self._lock:
                self.pool.retract(self._ad(self._clock()), self.rhythm.deadline)
        except PoolError:
            return  # it ends by itself
