"""Messages on their way: no receiver holds up another, or whoever hands one in."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from updraft.errors import NotSent
from updraft.metrics.alarms.conditions import AlarmKind
from updraft.metrics.alarms.receivers import Receiver
from updraft.metrics.alarms.sending import Sender
from updraft.metrics.alarms.watching import Message

MESSAGE = Message("lab", AlarmKind.BUDGET, 1.0, ("it is spent",))


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


def test_one_that_hangs_holds_up_nobody() -> None:
    free, got = threading.Event(), SimpleQueue[Message]()
    stuck = Receiver("exec", lambda _message: free.wait(60) and None)
    with Sender([stuck, Receiver("mail", got.put)], queued=2) as sender:
        begun = time.monotonic()
        for _ in range(8):
            sender.send(MESSAGE)
            got.get(timeout=20)
        assert time.monotonic() - begun < 20
        until(lambda: sender.outcomes().get(("mail", "sent")) == 8)
        assert sender.outcomes()["exec", "dropped"] >= 5
        assert ("exec", "sent") not in sender.outcomes()
        free.set()


def test_one_that_fails_is_tried_again_and_its_words_are_not_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tries: list[int] = []

    def deliver(_message: Message) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise NotSent("it answered 500")
        if len(tries) == 2:
            raise RuntimeError("https://hooks.test/s3cret is down")

    with Sender([Receiver("webhook", deliver)], again_after=(0.0, 0.0)) as sender:
        sender.send(MESSAGE)
        until(lambda: sender.outcomes().get(("webhook", "sent")) == 1)
    assert sender.outcomes() == {("webhook", "failed"): 2, ("webhook", "sent"): 1}
    said = capsys.readouterr().out
    assert "receiver 1 of notify (webhook) was not told: budget: it answered 500" in said
    assert "RuntimeError" in said
    assert "s3cret" not in said


def test_one_that_always_fails_is_given_up() -> None:
    def deliver(_message: Message) -> None:
        raise NotSent("no")

    with Sender([Receiver("exec", deliver)], again_after=(0.0,)) as sender:
        sender.send(MESSAGE)
        sender.send(MESSAGE)
        until(lambda: sender.outcomes().get(("exec", "failed")) == 4)
