"""Messages on their way: a queue and a thread for each receiver, so that none waits for another."""

import queue
import threading
from collections import Counter
from collections.abc import Mapping, Sequence

import structlog

from updraft.errors import NotSent
from updraft.metrics.alarms.receivers import Receiver
from updraft.metrics.alarms.watching import Message

QUEUED = 20
"""Messages that wait for one receiver; more are dropped, and that is logged."""
AGAIN_AFTER = (10.0, 60.0, 600.0)
"""Seconds after which a message that wasn't sent is tried again, each after the last."""
SENT, FAILED, DROPPED = "sent", "failed", "dropped"


class Sender:
    """Sends messages to all receivers while it is entered. Handing one in never waits."""

    def __init__(
        self, receivers: Sequence[Receiver], again_after: Sequence[float] = AGAIN_AFTER, queued: int = QUEUED
    ) -> None:
        self._receivers = receivers
        self._queues: list[queue.Queue[Message]] = [queue.Queue(queued) for _ in receivers]
        self._again_after = again_after
        self._quit = threading.Event()
        self._lock = threading.Lock()
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._log = structlog.get_logger("updraft")

    def __enter__(self) -> "Sender":
        for place, one in enumerate(self._receivers):
            name = f"updraft-notify-{place + 1}"
            threading.Thread(target=self._run, args=(place, one), daemon=True, name=name).start()
        return self

    def __exit__(self, *_: object) -> None:
        # What is under way may last for its deadline, and isn't waited for.
        self._quit.set()

    def send(self, message: Message) -> None:
        """Hand in a message for every receiver."""
        self._log.warning(message.subject, code=message.kind.value)
        for place, waiting in enumerate(self._queues):
            try:
                waiting.put_nowait(message)
            except queue.Full:
                self._note(place, DROPPED, f"{message.kind}: too many wait for it already")

    def outcomes(self) -> Mapping[tuple[str, str], float]:
        """How many messages were sent, failed or were dropped, by the kind of receiver."""
        with self._lock:
            return dict(self._outcomes)

    def _run(self, place: int, receiver: Receiver) -> None:
        while not self._quit.is_set():
            try:
                message = self._queues[place].get(timeout=1.0)
            except queue.Empty:
                continue
            self._deliver(place, receiver, message)

    def _deliver(self, place: int, receiver: Receiver, message: Message) -> None:
        for pause in (0.0, *self._again_after):
            if self._quit.wait(pause):
                return
            try:
                receiver.deliver(message)
            except NotSent as error:
                self._note(place, FAILED, f"{message.kind}: {error}")
            except Exception as error:  # whatever it was, the next message is worth a try
                self._note(place, FAILED, f"{message.kind}: {type(error).__name__}")
            else:
                self._note(place, SENT, "")
                return

    def _note(self, place: int, outcome: str, why: str) -> None:
        kind = self._receivers[place].kind
        with self._lock:
            self._outcomes[kind, outcome] += 1
        if why:
            # By its place in the file: its address is nobody's business.
            text = f"receiver {place + 1} of notify ({kind}) was not told: {why}"
            self._log.warning(text, code=f"notify-{outcome}")
