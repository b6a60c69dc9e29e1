"""A lane for each cloud: one that is slow holds up nobody but itself."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do in a lane. While one with this name is under way, it isn't begun a second time.

    `machines` is how many it is about: a cloud may want a call for each.
    """

    lane: str
    name: str
    run: Callable[[], None]
    machines: int = 1


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A task that has begun and isn't done: since when, in the seconds of `time.monotonic`."""

    lane: str
    name: str
    since: float
    machines: int


@dataclass(slots=True)
class _Batch:
    """What one cycle wants done, until its deadline: what hasn't begun by then is left to the next plan."""

    waiting: list[Task]
    lock: threading.Lock = field(default_factory=threading.Lock)
    closed: bool = False
    failure: BaseException | None = None

    def take(self) -> Task | None:
        with self.lock:
            return self.waiting.pop(0) if self.waiting and not self.closed else None


class Lanes:
    """Runs tasks in at most `width` threads for each lane; `width` 0 runs them in order, in the caller's."""

    def __init__(self, width: int = 4, deadline: float = 10.0) -> None:
        self._width = width
        self._deadline = deadline
        self._lock = threading.Lock()
        self._under_way: dict[str, UnderWay] = {}
        self._threads: dict[str, int] = {}

    def run(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """Run them, and wait until all are done, at most for the deadline.

        Returns the names of those that are still under way or were not begun. Raises what a task raises.
        """
        todo = list(tasks)
        if self._width == 0:
            for task in todo:
                task.run()
            return ()
        by_lane: dict[str, list[Task]] = {}
        for task in todo:
            by_lane.setdefault(task.lane, []).append(task)
        batches = [_Batch(waiting) for waiting in by_lane.values()]
        threads = [
            thread
            for lane, batch in zip(by_lane, batches, strict=True)
            for thread in self._begin(lane, batch)
        ]
        self._join(threads, batches)
        with self._lock:
            late = {task.name for task in todo} & self._under_way.keys()
        return tuple(sorted(late | {task.name for batch in batches for task in batch.waiting}))

    def under_way(self) -> tuple[UnderWay, ...]:
        """What is being done now, also what earlier calls of `run` have begun."""
        with self._lock:
            return tuple(self._under_way.values())

    def _begin(self, lane: str, batch: _Batch) -> list[threading.Thread]:
        with self._lock:
            # Threads that still hang in an earlier cycle's call take up the lane's room.
            room = min(self._width - self._threads.get(lane, 0), len(batch.waiting))
            self._threads[lane] = self._threads.get(lane, 0) + max(0, room)
        made = [
            threading.Thread(target=self._work, args=(lane, batch), daemon=True, name=f"updraft-act-{lane}")
            for _ in range(max(0, room))
        ]
        for thread in made:
            thread.start()
        return made

    def _work(self, lane: str, batch: _Batch) -> None:
        try:
            while (task := batch.take()) is not None:
                self._one(task)
        except BaseException as error:  # handed to the caller of `run`: a thread has nobody to raise it to
            with batch.lock:
                batch.failure, batch.closed = error, True
        finally:
            with self._lock:
                self._threads[lane] -= 1

    def _one(self, task: Task) -> None:
        with self._lock:
            if task.name in self._under_way:
                return
            self._under_way[task.name] = UnderWay(task.lane, task.name, time.monotonic(), task.machines)
        try:
            task.run()
        finally:
            with self._lock:
                del self._under_way[task.name]

    def _join(self, threads: list[threading.Thread], batches: list[_Batch]) -> None:
        until = time.monotonic() + self._deadline
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        for batch in batches:
            with batch.lock:
                batch.closed = True
                if batch.failure is not None:
                    raise batch.failure
