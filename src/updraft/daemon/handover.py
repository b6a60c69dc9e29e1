"""Answers machines that ask for their own tokens: hears them, has the core decide, seals and tells."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from updraft.condor.collector.handover import Question
from updraft.core.machines.handover import Call, Decision, Give, Handed, Refuse, Wait, decide
from updraft.core.model import CloudView, MachineRecord, Reason
from updraft.core.settings import Policy
from updraft.errors import PoolError
from updraft.ledger import Ledger
from updraft.ledger.tokens import HandedToken, Issued, note, noted

K = TypeVar("K")
V = TypeVar("V")

AGAIN = 10.0
"""Seconds after which an answer is told again while the machine still asks: it may have been lost."""

CALL_AGAIN = 5.0
_LIFETIME = 120.0
_DEADLINE = 10.0
_AT_ONCE = 16
_REMEMBERED = 5000


class Answering(Protocol):
    """The pool, as far as it is asked for tokens."""

    def questions(self, deadline: float) -> tuple[Question, ...]:
        """What machines ask now."""

    def answer(self, answers: Sequence[Mapping[str, str]], lifetime: float, deadline: float) -> None:
        """Advertise answers to them."""

    def mint_own_token(self, launch_key: str, instance: str, lifetime: float) -> str:
        """A token for this one machine."""


@dataclass(slots=True)
class _Told:
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
        self._told: dict[str, _Told] = {}
        self._found: dict[str, tuple[str, float]] = {}  # by the key: what is at its machine's address, when
        self._refused: dict[tuple[str, str], float] = {}  # when, by the machine and why
        self.reconfigure(None, frozenset())

    def reconfigure(self, pool: Answering | None, called: frozenset[str]) -> None:
        """Go on with a changed configuration; `called` are the classes that can be called at their address.

        Without a pool no machine asks.
        """
        self._pool, self._called = pool, called

    def turn(
        self,
        machines: Sequence[MachineRecord],
        clouds: Mapping[str, CloudView],
        policy: Policy,
        now: float,
    ) -> None:
        """Answer what is asked now, while any of the `machines` boots.

        Raises PoolError where the collector can't be asked or told.
        """
        pool = self._pool
        if pool is None or not any(one.ended_at is None and one.joined_at is None for one in machines):
            return
        asked = [one for one in pool.questions(_DEADLINE) if self._is_due(one, now)]
        if not asked:
            return
        records = {one.id: one for one in machines}
        decisions = [self._decided(one, clouds, records, policy, now) for one in asked]
        self._ask_addresses(zip(asked, decisions, strict=True), now)
        answers = []
        for one, first in zip(asked, decisions, strict=True):
            again = isinstance(first, Call)
            last = self._decided(one, clouds, records, policy, now) if again else first
            answers.append(self._answer(pool, one, last, records, now))
        pool.answer(answers, _LIFETIME, _DEADLINE)
        self._forget_some()

    def _is_due(self, question: Question, now: float) -> bool:
        told = self._told.get(question.asked.key)
        every = AGAIN if told is None or "UpdraftWaits" not in told.answer else 1.0
        return told is None or abs(now - told.at) >= every

    def _decided(
        self,
        question: Question,
        clouds: Mapping[str, CloudView],
        records: Mapping[str, MachineRecord],
        policy: Policy,
        now: float,
    ) -> Decision:
        asked = question.asked
        record, given = records.get(asked.instance), noted(self._ledger, HandedToken, asked.instance)
        worker = policy.classes.get(record.worker_class) if record else None
        found, at = self._found.get(asked.key, (None, now))
        if found == "" and abs(now - at) >= CALL_AGAIN:
            found = None
        return decide(
            asked,
            clouds=clouds,
            records=records,
            handed=None if given is None else Handed(given.key, given.at),
            found=found,
            witnessed=record is None or record.worker_class in self._called,
            boot_deadline=worker.boot_deadline if worker else 0.0,
            now=now,
        )

    def _ask_addresses(self, pairs: "zip[tuple[Question, Decision]]", now: float) -> None:
        wanted = [(q.asked.key, d.address) for q, d in pairs if isinstance(d, Call)]
        if not wanted:
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(wanted))) as pool:
            for (key, _), found in zip(wanted, pool.map(self._call, (a for _, a in wanted)), strict=True):
                self._found[key] = found, now

    def _answer(
        self,
        pool: Answering,
        question: Question,
        decision: Decision,
        records: Mapping[str, MachineRecord],
        now: float,
    ) -> Mapping[str, str]:
        key, before = question.asked.key, self._told.get(question.asked.key)
        match decision:
            case Give():
                said = before.answer if before and "UpdraftSealed" in before.answer else None
                said = said or self._given(pool, question, records[question.asked.instance], now)
            case Refuse(reason):
                said = {"UpdraftRefused": reason.text}
                self._tell_refusal(question.asked.instance, reason, records, now)
            case Wait(reason):
                said = {"UpdraftWaits": reason.text}
            case _:
                said = {"UpdraftWaits": "its address is asked"}
        self._told[key] = _Told(said, now)
        return {**said, "key": key}

    def _given(
        self, pool: Answering, question: Question, record: MachineRecord, now: float
    ) -> Mapping[str, str]:
        asked = question.asked
        made = noted(self._ledger, Issued, asked.launch)
        if made is None:
            return {"UpdraftWaits": "the ledger has no note of a token of this launch"}
        try:
            token = pool.mint_own_token(asked.launch, asked.instance, made.expires - now)
            sealed = self._seal(token, question.cert)
        except PoolError as error:
            return {"UpdraftWaits": str(error)}
        known = noted(self._ledger, HandedToken, asked.instance)
        # Before it is told: after a crash it is told again, to this key only.
        note(
            self._ledger,
            HandedToken(
                record.cloud, record.id, asked.launch, asked.key, self._whose(token), now, made.expires
            ),
        )
        if known is None:
            took = now - record.requested_at
            text = f"{asked.instance} is handed its own token, {took:.0f} s after it was asked for"
            self._ledger.event(now, "tokens", asked.instance, Reason("token-handed", text))
        return {"UpdraftSealed": sealed}

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
        _shortened(self._refused)


def _shortened(kept: dict[K, V]) -> None:
    """Without its oldest entries."""
    while len(kept) > _REMEMBERED:
        kept.pop(next(iter(kept)))
