"""The machines that are a pool's heads: launched, found again, waited for, ended.

They carry the tag of a pool of their own (`POOL.heads`), so that the pool's controller takes them for
somebody else's; the name of a head is what workers have as their class.
"""

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from updraft.clouds.base import TAG_CLASS, LaunchRequest, Machines
from updraft.config.values.checks import HEADS
from updraft.core.model import CloudOffer, CloudState, Instance
from updraft.errors import CloudError, CloudUnavailable, ProblemFound, Throttled, UsageError

BOOT_OK, BOOT_FAILED = "updraft-boot: ok", "updraft-boot: FAILED"
LEAST_CPUS, LEAST_MEMORY = 2, 2048
"""What a head needs at least: HTCondor's daemons, updraft and a few hundred shadows. Memory in MiB."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,40}")
_OVER = (CloudState.TERMINATED, CloudState.STOPPING)
_TRIES = 3


@dataclass(frozen=True, slots=True)
class HeadOrder:
    """A head to be launched."""

    name: str
    image: str
    flavor: str
    zone: str
    user_data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Patience:
    """How time passes while something is waited for: seconds, whom to tell, and what shows what it is."""

    say: Callable[[str], None] = lambda _line: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    every: float = 2.0
    shown: Callable[[str], contextlib.AbstractContextManager[None]] = lambda _what: contextlib.nullcontext()


def heads_pool(pool: str) -> str:
    """The name of the pool that the heads of `pool` belong to in a cloud's tags."""
    return pool + HEADS


def checked_head_name(name: str) -> str:
    """The name of a head. Raises UsageError for what no tag or host name would take."""
    if not _NAME.fullmatch(name):
        raise UsageError(f'"{name}" is no name for a head: letters, digits, -, _ and . are')
    return name


class Heads:
    """The heads of one pool in one cloud; `machines` are those of `heads_pool`."""

    def __init__(self, machines: Machines, patience: Patience | None = None) -> None:
        self._machines = machines
        self._patience = patience or Patience()

    def all(self) -> tuple[Instance, ...]:
        """Every head that isn't over, one that rests included. Raises CloudError."""
        return tuple(one for one in self._machines.machines() if one.state not in _OVER)

    def named(self, name: str) -> Instance | None:
        """The head of this name. UsageError where there is more than one: then ids say which is meant."""
        found = [one for one in self.all() if name in (one.worker_class, one.id)]
        if len(found) > 1:
            ids = ", ".join(one.id for one in found)
            raise UsageError(f"there are {len(found)} heads called {name} ({ids}); say the id of one")
        return found[0] if found else None

    @contextlib.contextmanager
    def launched(self, order: HeadOrder) -> Iterator[Instance]:
        """A new head; should what is done with it here fail, it is ended, or said where it can't be."""
        key = f"head-{order.name}-{secrets.token_hex(4)}"
        request = LaunchRequest(
            key=key, count=1, image=order.image, flavor=order.flavor, zone=order.zone,
            market="on-demand", user_data=order.user_data, tags={TAG_CLASS: order.name},
        )  # fmt: skip
        try:
            yield self._machines.launch(request)[0]
        except BaseException:
            self._undo(key)
            raise

    def up(self, machine: str, deadline: float) -> bool:
        """Wait until its console says that the boot is done; False where it doesn't within `deadline`.

        Raises ProblemFound where the machine is gone or its boot says that it has failed.
        """
        patience = self._patience
        end, told = patience.clock() + deadline, ""
        while True:
            with contextlib.suppress(CloudUnavailable, Throttled):
                state = self._state(machine)
                console = self._machines.console(machine)
                if BOOT_OK in console:
                    return True
                _judge(machine, console)
                if state != told:
                    patience.say(f"machine {machine} is {state}")
                    told = state
            if patience.clock() >= end:
                return False
            patience.sleep(patience.every)

    def end(self, machine: str, deadline: float) -> bool:
        """End this head, and wait until it is gone; False where the cloud takes longer than `deadline`."""
        patience = self._patience
        self._machines.terminate([machine])
        end = patience.clock() + deadline
        while True:
            with contextlib.suppress(CloudUnavailable, Throttled):
                left = {one.id: one.state for one in self._machines.machines()}
                if left.get(machine, CloudState.TERMINATED) is CloudState.TERMINATED:
                    return True
            if patience.clock() >= end:
                return False
            patience.sleep(patience.every)

    # ------------------------------------------------------------------------------------------- inside

    def _state(self, machine: str) -> str:
        found = {one.id: one for one in self._machines.machines()}.get(machine)
        if found is None:
            return "not listed yet"
        if found.state in (*_OVER, CloudState.ERROR, CloudState.STOPPED):
            raise ProblemFound(
                f"machine {machine} is {found.state.value}: {found.fault or 'no reason is told'}"
            )
        return found.state.value

    def _undo(self, key: str) -> None:
        """End what the launch with this key has made, also where its answer was lost."""
        trouble = ""
        for _ in range(_TRIES):
            try:
                mine = [one.id for one in self.all() if one.launch_key == key]
                self._machines.terminate(mine)
            except CloudError as error:
                trouble = str(error)
                self._patience.sleep(self._patience.every)
            else:
                for one in mine:
                    self._patience.say(f"machine {one} is ended again")
                    self._gone(one)
                return
        self._patience.say(f"the machine of launch {key} may be left, and is yours to end: {trouble}")

    def _gone(self, machine: str) -> None:
        """Wait a little: a security group can't go before its machine."""
        with contextlib.suppress(CloudError):
            self.end(machine, 120.0)


def fitting(offers: tuple[CloudOffer, ...], flavor: str, zone: str) -> CloudOffer:
    """The cheapest on-demand offer on which a head runs, or the one of this flavor; unknown prices come last.

    Raises UsageError where the cloud sells none.
    """
    chosen = [
        one
        for one in offers
        if one.market == "on-demand" and one.left != 0 and zone in ("", one.zone) and _suits(one, flavor)
    ]
    if not chosen:
        what = f"flavor {flavor}" if flavor else f"{LEAST_CPUS} cpus and {LEAST_MEMORY} MiB"
        where = f" in {zone}" if zone else ""
        raise UsageError(
            f"the cloud sells no machine of {what}{where} now; `updraft offers` shows what it has"
        )
    return min(
        chosen,
        key=lambda one: (one.price is None, one.price or 0.0, one.resources.cpus, one.flavor, one.zone),
    )


def _suits(offer: CloudOffer, flavor: str) -> bool:
    if flavor:
        return offer.flavor == flavor
    has = offer.resources
    return has.cpus >= LEAST_CPUS and has.memory >= LEAST_MEMORY and not has.gpus


def _judge(machine: str, console: str) -> None:
    """Raises ProblemFound where the console says that the boot has failed."""
    line = next((one for one in console.splitlines() if BOOT_FAILED in one), "")
    if line:
        raise ProblemFound(f"machine {machine}: {line[line.index(BOOT_FAILED) :].strip()}")
