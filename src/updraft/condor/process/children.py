"""Child processes that talk to HTCondor, one for each source, each call with a deadline.

HTCondor's library holds the interpreter while it waits for the network, so it is never called in the daemon's
own process. A child that misses its deadline is killed and replaced; another source's child doesn't notice.
What a child takes to begin isn't its source's silence, and counts for no deadline: on a busy machine a source
that was late once would be asked by a new child, which is late too, for ever.

They are forked by one server, which has loaded what each of them needs and nothing of HTCondor's: a third of
the work of a process that loads it for itself.
"""

import contextlib
import fcntl
import multiprocessing
import os
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from multiprocessing.context import BaseContext
from typing import Any, ParamSpec, TypeVar

import pebble

from updraft.errors import PoolDenied, PoolError, PoolTimeout

P = ParamSpec("P")
R = TypeVar("R")

_F_SETSIG = 10  # of fcntl(2) on Linux: which signal to send for a file, instead of SIGIO
_LOADED = [
    "__main__",
    "pebble",
    "updraft.condor.collector.views",
    "updraft.condor.demand.schedd",
    "updraft.condor.process.serving",
]
# A child is replaced after so many calls, and may not grow beyond so many bytes: a leak or an endless answer
# ends one child, never the machine.
_CALLS_PER_CHILD = 2000
_CHILD_BYTES = 3 << 30
_TEXT = 300
_BEGIN = 30.0  # seconds that a child may take to begin: it loads much, and may have to wait for a processor


class Children:
    """The children of one pool. `environment` is added to theirs before HTCondor's library is loaded."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._pools: dict[str, pebble.ProcessPool] = {}
        self._begun: dict[str, Future[None]] = {}  # done once the present child of a source has begun
        self._lock = threading.Lock()
        self._closed = False

    def call(
        self, source: str, deadline: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `function` in the child of `source`, and return what it returns.

        Raises PoolTimeout when there is no answer within `deadline` seconds of a child that has begun, and
        the function's own PoolError; anything else that went wrong in there is a PoolError too.
        """
        self._await_begun(source, function)
        future = self._pool(source).schedule(_guarded, args=(function, args, kwargs))
        try:
            return future.result(timeout=deadline)  # type: ignore[no-any-return]
        except (FutureTimeout, CancelledError) as error:
            self._replace(source, future)
            raise PoolTimeout(f"{source} gave no answer within {deadline:g} s") from error
        except pebble.ProcessExpired as error:
            self._begun.pop(source, None)
            raise PoolError(f"the process that asked {source} died ({error.exitcode})") from error
        except BrokenExecutor as error:  # it died before it had taken the call up
            raise PoolError(f"the process that asked {source} died") from error

    def _await_begun(self, source: str, function: Callable[..., Any]) -> None:
        """Wait for a child that is new; what else is wrong with it, the call itself will say."""
        pool = self._pool(source)
        begun = self._begun.get(source)
        if begun is None:
            begun = self._begun[source] = pool.schedule(_ready, args=(function,))
        if wait([begun], _BEGIN).not_done:
            self._replace(source, begun)
            raise PoolTimeout(f"the process that asks {source} did not begin within {_BEGIN:g} s")

    def _replace(self, source: str, future: "Future[Any]") -> None:
        """End the child that is at work on this; another takes its place."""
        self._begun.pop(source, None)
        future.cancel()

    def _pool(self, source: str) -> pebble.ProcessPool:
        with self._lock:
            if self._closed:
                raise PoolError(f"{source} isn't asked in this way any more: the configuration has changed")
            pool = self._pools.get(source)
            if pool is None or not pool.active:
                pool = pebble.ProcessPool(
                    max_workers=1,
                    max_tasks=_CALLS_PER_CHILD,
                    initializer=prepare,
                    initargs=(dict(os.environ) | self._environment,),
                    context=forked(),
                )
                self._pools[source] = pool
                self._begun.pop(source, None)
            return pool

    def begin(self, source: str) -> None:
        """Start the child of `source`, if there is none: it is ready sooner when it is first asked."""
        with self._lock:
            there = source in self._pools
        if not there:
            self._begun[source] = self._pool(source).schedule(_ready, args=(_ready,))

    def drop(self, sources: Iterable[str]) -> None:
        """End the children of these sources, which are no more. A call that is under way has no answer."""
        with self._lock:
            gone = [self._pools.pop(source) for source in sources if source in self._pools]
        for pool in gone:
            _end(pool)

    def close(self) -> None:
        """End all children. A call that is under way has no answer, and there are no further ones."""
        with self._lock:
            self._closed = True
            every = tuple(self._pools)
        self.drop(every)


def _end(pool: pebble.ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    with contextlib.suppress(FutureTimeout):
        pool.join(5)


def expect_sudden_death() -> None:
    """Before the first child: whoever is killed outright leaves nothing behind, and no alarm that it did.

    Python's own tracker of semaphores outlives its process and removes what that had; it warns of them as
    leaked, in the log of a daemon that was killed. It takes the options for warnings of who starts it.
    """
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")


def forked() -> BaseContext:
    """How processes begin that talk to HTCondor, or read what strangers wrote."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    return context


def prepare(environment: Mapping[str, str]) -> None:
    """Make this process a child: it dies with its parent, leaves Ctrl-C to it, and can't grow without end.

    `environment` is all of its own: the server that forked it may have begun with another one.
    """
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (_CHILD_BYTES, _CHILD_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)


def _die_with_parent() -> None:
    """Have the kernel kill this process when the pipe ends that only its parent holds open.

    Nothing here could: HTCondor's library may hold the interpreter. Nor does the end of the process that has
    forked this one say anything: that lives as long as its last child.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101  # this is a child
    pipe = int(parent.sentinel)
    fcntl.fcntl(pipe, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([pipe], [], [], 0)[0]:
        os._exit(1)  # it died before we asked to be told


def _ready(_function: Callable[..., Any]) -> None:
    """Load what every call needs, and by its name this function: it takes longer than most calls."""
    import htcondor2  # noqa: F401


def _guarded(function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
    import classad2
    import htcondor2

    try:
        return function(*args, **kwargs)
    except (htcondor2.HTCondorException, classad2.ClassAdException) as error:
        raise mapped(str(error)) from None  # neither can be handed to another process
    except MemoryError:
        raise PoolError("HTCondor's answer is larger than a child may hold") from None


def mapped(text: str) -> PoolError:
    """The error that a text of HTCondor's stands for, cut to one short line."""
    short = " ".join(text.split())[:_TEXT]
    lower = short.lower()
    if any(
        word in lower
        for word in ("denied", "authoriz", "not authenticated", "unauthenticated", "secman:2004")
    ):
        return PoolDenied(f"HTCondor refused: {short}")
    if "timed out" in lower or "timeout" in lower:
        return PoolTimeout(f"HTCondor gave no answer: {short}")
    return PoolError(f"HTCondor failed: {short}")
