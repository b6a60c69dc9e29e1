"""Questions that are put at the same time, each answered or not within one deadline."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from updraft.errors import ProblemFound, UpdraftError


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question: a value, or the error in its place."""

    value: Any = None
    error: UpdraftError | None = None


def ask(questions: Mapping[str, Callable[[], Any]], deadline: float) -> Mapping[str, Answer]:
    """Put all questions, each in a thread of its own, and return after `deadline` seconds at the latest.

    Whoever hasn't answered by then has a ProblemFound for an error, and is left to itself: its thread doesn't
    keep the process alive. Errors other than UpdraftErrors are bugs, and are raised here.
    """
    answers: dict[str, Answer] = {}
    faults: list[Exception] = []

    def put(name: str, question: Callable[[], Any]) -> None:
        try:
            answers[name] = Answer(question())
        except UpdraftError as error:
            answers[name] = Answer(error=error)
        except Exception as error:
            faults.append(error)

    threads = {
        name: threading.Thread(target=put, args=(name, question), daemon=True, name=f"check {name}")
        for name, question in questions.items()
    }
    end = time.monotonic() + deadline
    for thread in threads.values():
        thread.start()
    for thread in threads.values():
        thread.join(max(0.0, end - time.monotonic()))
    if faults:
        raise faults[0]
    late = Answer(error=ProblemFound(f"no answer within {deadline:g} s"))
    return {name: answers.get(name, late) for name in questions}


class Once:
    """Something that several questions need, made by the first that asks; an error is everybody's."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._answer: Answer | None = None

    def __call__(self) -> Any:
        with self._lock:
            if self._answer is None:
                try:
                    self._answer = Answer(self._make())
                except UpdraftError as error:
                    self._answer = Answer(error=error)
        if self._answer.error is not None:
            raise self._answer.error
        return self._answer.value
