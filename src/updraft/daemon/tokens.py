"""What becomes of workers' tokens while the controller runs, in a thread of its own beside the loop.

A machine that has booted is handed its own token (`core.handover` decides), and what machines had is revoked
once they are gone (`core.unneeded`).
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from updraft.clouds.cloud import Cloud
from updraft.condor.tokens.workers import whole
from updraft.core.machines.unneeded import unneeded
from updraft.core.model import MachineRecord, Reason, Snapshot
from updraft.core.settings import Policy
from updraft.daemon.handover import Handover
from updraft.daemon.reporting import Cycle
from updraft.errors import UpdraftError
from updraft.ledger import Ledger
from updraft.ledger.tokens import HandedToken, Issued, all_noted

REVOKE_EVERY = 60.0
"""Seconds from one revocation to the next: each has the collector read its configuration again."""

_LOOK_EVERY = 1.0
_END = 60.0


class Ended(Protocol):
    """Where the tokens that are over are kept, and made known to the collector."""

    def known(self) -> frozenset[str]:
        """The identities that are revoked already."""

    def revoke(self, identities: Mapping[str, float | None], now: float) -> None:
        """Revoke these, each with its token's end."""


@dataclass(frozen=True, slots=True)
class _Over:
    """A token that is over: whose it was, what the event says, and when it would have ended."""

    identity: str
    subject: str
    text: str
    expires: float


class TokenKeeper:
    """Hands machines their tokens, and revokes those of machines that are gone.

    `ended` None: this head can't be told of the latter; `handover` None: no machine asks.
    """

    def __init__(
        self,
        ledger: Ledger,
        ended: Ended | None,
        clock: Callable[[], float] = time.time,
        handover: Handover | None = None,
    ) -> None:
        self._ledger = ledger
        self._ended = ended
        self._clock = clock
        self._handover = handover
        self._log = structlog.get_logger("updraft")
        self._seen: tuple[Snapshot, Policy, Mapping[str, Cloud]] | None = None
        self._revoked_at = float("-inf")
        self._said: dict[str, str] = {}
        self._quit = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="updraft-tokens")

    def watch(self, cycle: Cycle, policy: Policy, clouds: Mapping[str, Cloud]) -> None:
        """Go by what this turn of the loop has seen; of one that doesn't act, by nothing."""
        self._seen = (cycle.snapshot, policy, clouds) if cycle.standing is None else None

    def start(self) -> None:
        """Work from now on, until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Revoke what is over by the last turn of the loop, and end."""
        self._quit.set()
        self._thread.join(_END)
        self.turn(at_once=True)

    def _run(self) -> None:
        while not self._quit.wait(_LOOK_EVERY):
            self.turn()

    def turn(self, *, at_once: bool = False) -> None:
        """Do what is due; a fault costs this turn and is said once."""
        if self._seen is None:
            return
        (snapshot, policy, clouds), now = self._seen, self._clock()
        handover = self._handover
        if handover is not None and not at_once:
            shows = {name: one.machines for name, one in clouds.items()}
            self._try("tokens-not-handed", lambda: handover.turn(snapshot, policy, shows, now))
        if at_once or abs(now - self._revoked_at) >= REVOKE_EVERY:
            self._revoked_at = now
            self._try("tokens-not-revoked", lambda: self._revoke(snapshot, now))

    def _try(self, code: str, do: Callable[[], None]) -> None:
        try:
            do()
        except (UpdraftError, OSError) as error:
            if self._said.get(code) != str(error):
                self._log.warning(f"{code.replace('-', ' ')}: {error}", code=code)
            self._said[code] = str(error)
        except Exception:
            self._log.exception("a fault of updraft itself", code=code)
        else:
            self._said.pop(code, None)

    def _revoke(self, snapshot: Snapshot, now: float) -> None:
        if self._ended is None:
            return
        over = {one.identity: one for one in (*self._launches(snapshot, now), *self._machines(now))}
        known = self._ended.known() if over else frozenset()
        # With the identity of a launch those of its machines are revoked.
        covered = {name for name in over if whole(name) != name and whole(name) in known | over.keys()}
        new = {name: one for name, one in over.items() if name not in known | covered}
        if not new:
            return
        self._ended.revoke({name: one.expires for name, one in new.items()}, now)
        for one in new.values():
            self._ledger.event(now, "tokens", one.subject, Reason("token-over", one.text))

    def _launches(self, snapshot: Snapshot, now: float) -> list[_Over]:
        """Of launches of which no machine is left."""
        made = all_noted(self._ledger, Issued)
        # The ledger is read after the clouds, as in a look: it knows each machine that they could show.
        gone = unneeded(self._ledger.view(now), snapshot.clouds)
        text = "the machines of launch {} are gone, and its token with them"
        return [
            _Over(one.identity, one.launch, text.format(one.launch), one.expires)
            for one in (made[launch] for launch in gone if launch in made)
            if one.expires > now
        ]

    def _machines(self, now: float) -> list[_Over]:
        """Of single machines that have ended, for which others of their launch may live on."""
        ended: dict[str, MachineRecord] = {
            one.id: one
            for one in self._ledger.view(now).machines
            if one.ended_at is not None and one.let_go is None
        }
        text = "machine {} is gone, and its token with it"
        return [
            _Over(one.identity, machine, text.format(machine), one.expires)
            for machine, one in all_noted(self._ledger, HandedToken).items()
            if machine in ended and one.expires > now
        ]
