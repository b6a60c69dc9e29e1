"""Answers machines that ask for their own tokens: hears them, has the core decide, seals and tells."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from updraft.condor.base import ATTR_INSTANCE
from updraft.condor.collector.handover import SignedRequest, keys_on
from updraft.core.machines.cooldowns import acting_since
from updraft.core.machines.handover import (
    Call,
    Decision,
    Give,
    Handed,
    Read,
    Refuse,
    TokenRequest,
    Wait,
    Witness,
    decide,
    of_another,
)
from updraft.core.model import MachineRecord, Reason, Snapshot
from updraft.core.settings import Policy
from updraft.errors import CloudError, PoolError
from updraft.ledger import Ledger
from updraft.ledger.tokens import HandedToken, Issued, note, noted

K = TypeVar("K")
V = TypeVar("V")

AGAIN = 10.0
"""Seconds after which an answer is told again while the machine still asks: it may have been lost."""

CALL_AGAIN = 5.0
READ_AGAIN = 10.0
_LIFETIME = 120.0
_DEADLINE = 10.0
_AT_ONCE = 64
_READS = 16  # consoles that are read in a turn
CALLS = 128
"""Addresses that are called in a turn: so many that say nothing take two rounds of some seconds."""

_REMEMBERED = 5000


class Answering(Protocol):
    """The pool, as far as it is asked for tokens."""

    def questions(self, deadline: float) -> tuple[SignedRequest, ...]:
        """What machines ask now."""

    def answer(self, answers: Sequence[Mapping[str, str]], lifetime: float, deadline: float) -> None:
        """Advertise answers to them."""

    def mint_own_token(self, launch_key: str, instance: str, lifetime: float) -> str:
        """A token for this one machine."""

    def mint_broker_token(self, launch_key: str, lifetime: float, instance: str = "") -> str:
        """One that is good for this machine at the broker."""


class Shows(Protocol):
    """What is asked of the machines of a cloud: see `clouds.base.Machines`."""

    def console(self, machine: str) -> str:
        """What the machine has printed; empty where there is nothing."""


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """Where the machines of a class show their keys: at this address ("": the one that their cloud shows), or
    (None) on their consoles. Behind a `broker` they need a token for it, too."""

    address: str | None = ""
    broker: bool = False


@dataclass(slots=True)
class _AskingMachine:
    """Who has asked for a machine's token: since when, and with which keys (two are as good as many)."""

    since: float
    keys: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Answer:
    """What was told to a key last, when, and in which words the ledger has it."""

    answer: Mapping[str, str]
    at: float


class Handover:
    """Turn it about every second. `call` is asked which key is at an address, `seal` seals a token to a key;
    `whose` makes the identity of a token known."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        call: Callable[[str], str],
        seal: Callable[[str, bytes], str],
        whose: Callable[[str], str],
    ) -> None:
        self._ledger = ledger
        self._call = call
        self._seal = seal
        self._whose = whose
        # One key may ask for several machines, or have been copied: what is found or told is of a question.
        self._told: dict[TokenRequest, _Answer] = {}
        self._found: dict[tuple[TokenRequest, Call | Read], tuple[frozenset[str], float]] = {}
        self._looked: dict[Call | Read, float] = {}
        self._askers: dict[str, _AskingMachine] = {}  # by the machine
        self._proven: set[str] = set()  # clouds of which a console has shown a key
        self._refused: dict[tuple[str, str], float] = {}  # when, by the machine and why
        self.reconfigure(None, {})

    def reconfigure(self, pool: Answering | None, shown: Mapping[str, KeyPlace]) -> None:
        """Go on with a changed configuration; `shown` is where the machines of each class show their keys.

        Without a pool no machine asks.
        """
        self._pool, self._shown = pool, shown

    def turn(self, snapshot: Snapshot, policy: Policy, clouds: Mapping[str, Shows], now: float) -> None:
        """Answer what is asked now, while any machine of the last look boots.

        Raises PoolError where the collector can't be asked or told.
        """
        pool, machines = self._pool, snapshot.ledger.machines
        if pool is None or not any(one.ended_at is None and one.joined_at is None for one in machines):
            return
        records = {one.id: one for one in machines}
        asked = self._honest(pool.questions(_DEADLINE), records, now)
        self._note_askers(asked, records, now)
        asked = [one for one in asked if self._is_due(one, now)]
        if not asked:
            return
        decisions = [self._decided(one, snapshot, records, policy, now) for one in asked]
        self._look(zip(asked, decisions, strict=True), clouds, now)
        answers = []
        for one, first in zip(asked, decisions, strict=True):
            again = isinstance(first, Call | Read)
            last = self._decided(one, snapshot, records, policy, now) if again else first
            answers.append(self._answer(pool, one, last, records, now))
        pool.answer(answers, _LIFETIME, _DEADLINE)
        self._forget_some()

    def _honest(
        self, asked: Iterable[SignedRequest], records: Mapping[str, MachineRecord], now: float
    ) -> list[SignedRequest]:
        """Those that have shown the token of their launch. The others are told of, and get no answer: the key
        may be copied from a machine's own question, and that machine would read it."""
        honest = []
        for one in asked:
            record = records.get(one.asked.instance)
            launches = {one.asked.launch} if record is None else {one.asked.launch, record.launch_key}
            if launches == {one.asked.shown}:
                honest.append(one)
            else:
                self._tell_refusal(one.asked.instance, of_another(one.asked), records, now)
        return honest

    def _note_askers(
        self, asked: Iterable[SignedRequest], records: Mapping[str, MachineRecord], now: float
    ) -> None:
        """Of machines that are known: whatever else is asked is no sign."""
        for one in asked:
            record = records.get(one.asked.instance)
            if record is not None:
                asker = self._askers.setdefault(record.id, _AskingMachine(now))
                if len(asker.keys) < 2:
                    asker.keys.add(one.asked.key)

    def _is_due(self, question: SignedRequest, now: float) -> bool:
        told = self._told.get(question.asked)
        every = AGAIN if told is None or "UpdraftWaits" not in told.answer else 1.0
        return told is None or abs(now - told.at) >= every

    def _decided(
        self,
        question: SignedRequest,
        snapshot: Snapshot,
        records: Mapping[str, MachineRecord],
        policy: Policy,
        now: float,
    ) -> Decision:
        asked = question.asked
        record, given = records.get(asked.instance), noted(self._ledger, HandedToken, asked.instance)
        worker = policy.classes.get(record.worker_class) if record else None
        wanted = partial(
            decide,
            asked,
            clouds=snapshot.clouds,
            records=records,
            handed=None if given is None else Handed(given.key, given.at),
            boot_deadline=worker.boot_deadline if worker else 0.0,
            began=acting_since(snapshot),
            now=now,
        )
        witness = self._witness(question, record, now)
        first = wanted(witness=witness)
        if not isinstance(first, Call | Read):
            return first
        found = self._found_at(asked, first, now)
        return first if found is None else wanted(witness=replace(witness, found=found))

    def _witness(self, question: SignedRequest, record: MachineRecord | None, now: float) -> Witness:
        # Of a class that is no more nobody knows how its machines were reached: they are called.
        shown = self._shown.get(record.worker_class, KeyPlace()) if record else KeyPlace()
        asker = self._askers.get(question.asked.instance, _AskingMachine(now))
        return Witness(
            shown.address,
            proven=record is not None and record.cloud in self._proven,
            asked_for=max(0.0, now - asker.since),
            contested=len(asker.keys) > 1,
        )

    def _found_at(self, asked: TokenRequest, where: Call | Read, now: float) -> frozenset[str] | None:
        """What was found there for this question a moment ago; None where it is to be looked at (again)."""
        found, at = self._found.get((asked, where), (None, now))
        again = CALL_AGAIN if isinstance(where, Call) else READ_AGAIN
        return found if abs(now - at) < again else None

    def _look(
        self, pairs: "zip[tuple[SignedRequest, Decision]]", clouds: Mapping[str, Shows], now: float
    ) -> None:
        """Where machines show their keys, as far as that is wanted: a bounded number at a time, first those
        at which nobody has looked for longest, so that those that say nothing hold up no others."""
        wanted = [(q.asked, d) for q, d in pairs if isinstance(d, Call | Read)]
        # However many ask for a machine, it is called once.
        places = list(dict.fromkeys(where for _, where in wanted))
        places.sort(key=lambda where: self._looked.get(where, -math.inf))
        calls = [where for where in places if isinstance(where, Call)][:CALLS]
        reads = [where for where in places if isinstance(where, Read)][:_READS]
        places = [*calls, *reads]
        if not places:
            return

        def keys(where: Call | Read) -> frozenset[str]:
            if isinstance(where, Call):
                return frozenset(filter(None, [self._call(where.address)]))
            cloud = clouds.get(where.cloud)
            try:
                return frozenset() if cloud is None else keys_on(cloud.console(where.machine))
            except CloudError:  # as one that shows nothing: it is asked again
                return frozenset()

        with ThreadPoolExecutor(min(_AT_ONCE, len(places))) as lanes:
            shown = dict(zip(places, lanes.map(keys, places), strict=True))
        self._looked |= dict.fromkeys(shown, now)
        for asked, where in wanted:
            if where in shown:
                self._found[asked, where] = shown[where], now
        self._proven |= {where.cloud for where, found in shown.items() if found and isinstance(where, Read)}

    def _answer(
        self,
        pool: Answering,
        question: SignedRequest,
        decision: Decision,
        records: Mapping[str, MachineRecord],
        now: float,
    ) -> Mapping[str, str]:
        asked, before = question.asked, self._told.get(question.asked)
        match decision:
            case Give(_, unseen):
                said = before.answer if before and "UpdraftSealed" in before.answer else None
                record = records[question.asked.instance]
                said = said or self._given(pool, question, record, now, unseen=unseen)
            case Refuse(reason):
                said = {"UpdraftRefused": reason.text}
                self._tell_refusal(question.asked.instance, reason, records, now)
            case Wait(reason):
                said = {"UpdraftWaits": reason.text}
                if reason.code in ("elsewhere", "contested"):
                    self._tell_refusal(question.asked.instance, reason, records, now)
            case _:
                said = {"UpdraftWaits": "it is looked which key it shows"}
        self._told[asked] = _Answer(said, now)
        return {**said, "key": asked.key, ATTR_INSTANCE: asked.instance}

    def _given(
        self, pool: Answering, question: SignedRequest, record: MachineRecord, now: float, *, unseen: bool
    ) -> Mapping[str, str]:
        asked = question.asked
        made = noted(self._ledger, Issued, asked.launch)
        if made is None:
            return {"UpdraftWaits": "the ledger has no note of a token of this launch"}
        broker = self._shown.get(record.worker_class, KeyPlace()).broker
        try:
            token = pool.mint_own_token(asked.launch, asked.instance, made.expires - now)
            answer = {"UpdraftSealed": self._seal(token, question.cert)}
            if broker:
                other = pool.mint_broker_token(asked.launch, made.expires - now, asked.instance)
                answer["UpdraftSealedBroker"] = self._seal(other, question.cert)
        except PoolError as error:
            return {"UpdraftWaits": str(error)}
        known = noted(self._ledger, HandedToken, asked.instance)
        # Before it is told: after a crash it is told again, to this key only.
        unseen = unseen or (known is not None and known.unseen)
        of = (record.cloud, record.id, asked.launch, asked.key, self._whose(token))
        note(self._ledger, HandedToken(*of, at=now, expires=made.expires, unseen=unseen))
        if known is None:
            took = now - record.requested_at
            text = f"{asked.instance} is handed its own token, {took:.0f} s after it was asked for"
            text += "; nothing has shown that it is this machine: its console is silent" if unseen else ""
            self._ledger.event(now, "tokens", asked.instance, Reason("token-handed", text))
        return answer

    def _tell_refusal(
        self, machine: str, reason: Reason, records: Mapping[str, MachineRecord], now: float
    ) -> None:
        """Once of each machine that is known: a thief can ask under any number of names, with any keys."""
        if machine in records and (machine, reason.code) not in self._refused:
            self._refused[machine, reason.code] = now
            self._ledger.event(now, "token-refused", machine, reason)

    def _forget_some(self) -> None:
        _shortened(self._told)
        _shortened(self._found)
        _shortened(self._looked)
        _shortened(self._refused)
        _shortened(self._askers)


def _shortened(kept: dict[K, V]) -> None:
    """Without its oldest entries."""
    while len(kept) > _REMEMBERED:
        kept.pop(next(iter(kept)))
