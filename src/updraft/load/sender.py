"""Simulated machines at work: joins over sessions of their own, updates over one that goes on.

Runs on the head as `python3 -m updraft.load.sender`: an order as JSON on stdin, at the end the result as JSON
on stdout. A join is a process of its own, since the bindings keep a session per process; so the collector
authenticates each machine anew, as it would a real one. All updates come from one more process, over a new
connection each: a little more work for the collector than a real startd's connection, which stays open.
"""

import json
import os
import select
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from updraft.condor.support import loading
from updraft.load import ads
from updraft.load.schedule import Event, Kind, Load, events

AT_ONCE = 8  # joins under way of one sender
_PATIENCE = 60.0  # seconds for what is still under way at the end
_LINE = 4096
_ERRORS = 3  # different ones that are told


@dataclass(frozen=True, slots=True)
class Order:
    """One sender's part of a load. `begins` is a POSIX time; `collectors` take the seats in turn."""

    load: Load
    part: int
    parts: int
    begins: float
    collectors: tuple[str, ...]
    tokens: str

    def text(self) -> str:
        """As `read` takes it."""
        return json.dumps(asdict(self))

    def collector(self, seat: int) -> str:
        """Where the machine at this seat sends its ads, always."""
        return self.collectors[seat % len(self.collectors)]


def read(text: str) -> Order:
    """The order that this text holds."""
    data = json.loads(text)
    load = Load(**data.pop("load"))
    return Order(load=load, collectors=tuple(data.pop("collectors")), **data)


@dataclass(slots=True)
class Sent:
    """What one seat's present machine has sent, and how it went."""

    life: int
    joined: bool = False
    joining: bool = False
    lost: bool = False
    updates: int = 0
    sent: float = 0.0


@dataclass(slots=True)
class Result:
    """All that a sender did. `calls` are the seconds that each update took; `behind` the worst delay."""

    joins: int = 0
    updates: int = 0
    failed: int = 0
    losses: int = 0
    behind: float = 0.0
    joined_at: float = 0.0
    calls: list[float] = field(default_factory=list)
    join_calls: list[float] = field(default_factory=list)
    machines: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


class Sender:
    """Carries out an order, one step after the other; the processes below it do the talking."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._due: deque[Event] = deque(events(order.load, order.part, order.parts))
        self._later: deque[Event] = deque()
        self._seats: dict[int, Sent] = {}
        self._result = Result()
        self._under_way = 0
        self._joining = 0
        self._reader, self._writer = os.pipe()
        self._updater = self._start_updater()
        self._partial = b""

    def run(self) -> Result:
        """Until everything has been sent and answered, or has had its time."""
        while self._due or self._later:
            self._take_results(self._step())
        until = time.time() + _PATIENCE
        while self._under_way and time.time() < until:
            self._take_results(0.2)
        os.close(self._updater)
        for seat, sent in self._seats.items():
            self._note(seat, sent)
        return self._result

    def _step(self) -> float:
        """Begin what is due, and say in how many seconds the next is."""
        waiting, self._later = self._later, deque()
        for event in waiting:
            self._begin(event)
        now = time.time() - self._order.begins
        while self._due and self._due[0].at <= now and self._joining < AT_ONCE:
            self._begin(self._due.popleft())
            now = time.time() - self._order.begins
        if self._later or self._joining >= AT_ONCE:
            return 0.05
        return max(0.0, min(1.0, self._due[0].at - now)) if self._due else 0.0

    def _begin(self, event: Event) -> None:
        seat = self._seats.get(event.seat)
        if event.kind is Kind.JOIN:
            if seat is not None:
                self._note(event.seat, seat)
            self._seats[event.seat] = Sent(event.life)
            self._join(event)
        elif seat is None or seat.life != event.life:
            return
        elif event.kind is Kind.LOSS:
            seat.lost = True
            self._result.losses += 1
        elif seat.joining:
            self._later.append(event)
        elif not seat.joined and not seat.lost:
            self._join(event)  # its join has failed: this is the next attempt
        elif not seat.lost:
            self._under_way += 1
            os.write(self._updater, f"{event.seat} {event.life} {event.number} {event.at}\n".encode())

    def _join(self, event: Event) -> None:
        self._seats[event.seat].joining = True
        self._under_way += 1
        self._joining += 1
        if os.fork() == 0:
            try:
                self._talk(event.seat, event.life, event.number, event.at)
            finally:
                os._exit(0)

    def _start_updater(self) -> int:
        theirs, ours = os.pipe()
        if os.fork():
            os.close(theirs)
            return ours
        os.close(ours)
        try:
            with os.fdopen(theirs) as orders:
                for line in orders:
                    *three, due = line.split()
                    seat, life, number = map(int, three)
                    self._talk(seat, life, number, float(due))
        finally:
            os._exit(0)

    def _talk(self, seat: int, life: int, number: int, due: float) -> None:
        """Send one update, which was due then, and report it. Runs in a child."""
        began, error = time.time(), ""
        update = ads.Update(seat, life, number, int(self._order.begins), began)
        try:
            loading.advertise(self._order.collector(seat), ads.made(update))
        except loading.failures() as raised:
            error = str(raised)
        behind, took = began - self._order.begins - due, time.time() - began
        words = [seat, life, began, round(behind, 4), round(took, 4), error[:200]]
        os.write(self._writer, (json.dumps(words) + "\n").encode())

    def _take_results(self, seconds: float) -> None:
        if select.select([self._reader], [], [], seconds)[0]:
            self._partial += os.read(self._reader, _LINE * 16)
            *lines, self._partial = self._partial.split(b"\n")
            for line in lines:
                self._take(*json.loads(line))
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass

    def _take(self, seat: int, life: int, began: float, behind: float, took: float, error: str) -> None:
        self._under_way -= 1
        sent, result = self._seats[seat], self._result
        first = sent.life == life and sent.joining
        result.behind = max(result.behind, behind)
        (result.join_calls if first else result.calls).append(took)
        if first:
            self._joining -= 1
            sent.joining = False
        if error:
            result.failed += 1
            if error not in result.errors and len(result.errors) < _ERRORS:
                result.errors.append(error)
            return
        if sent.life == life:
            sent.updates, sent.sent, sent.joined = sent.updates + 1, began, True
        if first:
            result.joins += 1
            result.joined_at = max(result.joined_at, began + took - self._order.begins)
        else:
            result.updates += 1

    def _note(self, seat: int, sent: Sent) -> None:
        name = ads.Update(seat, sent.life, 0, 0, 0.0).machine
        self._result.machines[name] = [sent.updates, sent.sent, float(sent.lost)]


def main(words: Sequence[str] = ()) -> int:
    """Carry out the order on stdin."""
    order = read(sys.stdin.read())
    os.environ.update(loading.token_only(Path(order.tokens)))
    loading.failures()  # loads the bindings before any fork, with this environment
    result: dict[str, Any] = asdict(Sender(order).run())
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
