"""One real HTCondor pool: reads in children, drains and tokens by HTCondor's own tools."""

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import classad2

from updraft.condor.access import PoolAccess, environment
from updraft.condor.base import ATTR_INSTANCE, ControllerAd, PoolSlots
from updraft.condor.collector import controllers, handover
from updraft.condor.collector import views as ads
from updraft.condor.collector.handover import SignedRequest
from updraft.condor.demand.apart import Apart
from updraft.condor.demand.schedd import ScheddMemory, read_demand
from updraft.condor.jobs import requeue_jobs
from updraft.condor.process.children import Children
from updraft.condor.process.news import Listener
from updraft.condor.process.tools import DrainingAlreadyError, Tools
from updraft.condor.tokens.workers import newest_key, own_user, user_of
from updraft.core.model import DrainMode, ScheddView, Slot
from updraft.errors import DrainRefused, PoolError, PoolTimeout

_OURS = "updraft"
_COLLECTOR = "the collector"
_ADVERTISE = ("ADVERTISE_STARTD", "ADVERTISE_MASTER")
BROKER_RIGHTS = ("ADVERTISE_MASTER", "DAEMON")
"""What a broker's token is made for; either is enough to register. Which of them it has, the broker says, and
one that was set up before takes DAEMON alone."""

_TEMPLATE_AGE = 1800.0
_MINT_DEADLINE = 20.0
_LOOK_AGAIN = 0.3
_LEFT = 1800.0  # seconds without an ad after which nobody waits for a schedd any more
_TOKEN = re.compile(r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$")


class HTCondorPool:
    """A pool as `condor.base.Pool` promises it. Close it, or use it in a `with`, to end its children."""

    def __init__(self, access: PoolAccess) -> None:
        self._access = access
        self._folder = Path(tempfile.mkdtemp(prefix="updraft-pool-"))
        given = environment(access, self._folder)
        self._children = Children(given)
        self._apart = Apart(self._children)
        self._tools = Tools(access.tools, given, access.collector)
        self._lock = threading.Lock()
        self._schedds: dict[str, ScheddMemory] = {}
        self._listed: dict[str, float] = {}
        self._slots = ads.SlotMemory()
        self._heard: Listener[Slot] = Listener()
        self._refreshed = time.monotonic()
        self._key_folder: str | None = None

    def __enter__(self) -> "HTCondorPool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all children, and remove the private configuration."""
        self._apart.close()
        self._children.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------------------------------------- reads

    def schedds(self, deadline: float) -> tuple[str, ...]:
        """Names of all schedds that the collector knows."""
        names = self._children.call(_COLLECTOR, deadline, ads.read_schedds, self._access.collector)
        now = time.monotonic()
        with self._lock:
            fresh = [name for name in names if name not in self._schedds]
            self._listed.update(dict.fromkeys(names, now))
            left = [name for name, at in self._listed.items() if now - at > _LEFT]
            for name in left:
                del self._listed[name]
                self._schedds.pop(name, None)
        for name in fresh:
            self._children.begin(f"schedd {name}")
        self._children.drop(f"schedd {name}" for name in left)
        self._apart.forget(left)
        return names

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        """Idle job groups of one schedd, and its running jobs where `running` asks for them."""
        with self._lock:
            memory = self._schedds.get(schedd, ScheddMemory())
        where, name = self._access.collector, self._access.name
        end = time.monotonic() + deadline
        try:
            view, memory = self._children.call(
                f"schedd {schedd}", deadline, read_demand, where, name, schedd, running, memory, deadline / 4
            )
        except PoolTimeout:
            with self._lock:
                self._schedds[schedd] = replace(memory, careful=True)
            raise
        view, memory = self._apart.complete(schedd, view, memory, max(0.0, end - time.monotonic()))
        with self._lock:
            self._schedds[schedd] = memory
        return view

    def slots(self, deadline: float) -> PoolSlots:
        """Every partitionable or static slot of the pool with its children, and how old the collector is."""
        now = time.monotonic()
        with self._lock:
            memory, refresh = self._slots, now - self._refreshed > _TEMPLATE_AGE
            known = self._heard.mark
        where, name = self._access.collector, self._access.name
        seen, news, memory = self._children.call(
            _COLLECTOR, deadline, ads.tell_slots, where, name, memory, refresh, known
        )
        with self._lock:
            self._slots = memory
            self._refreshed = now if refresh else self._refreshed
            slots = self._heard.take(news)
        return PoolSlots(replace(seen.view, slots=slots), seen.templates)

    # ------------------------------------------------------------------------------------------ drains

    def drain(self, slots: Sequence[Slot], mode: DrainMode, reason: str, deadline: float) -> None:
        """Close one machine: see `condor.base.Pool.drain`.

        The startd itself checks that it is the machine that is meant, since names come back. Its answer
        counts only from the address in its slot: another machine may say that it has this name and id.
        """
        slot = _addressed(slots)
        check = f"{ATTR_INSTANCE} =?= {classad2.quote(slot.instance_id)}"
        # Without -debug the tool says the same of a startd that is dead and of one that refuses us.
        words = ["condor_drain", "-debug", *self._tools.pool_words(), "-graceful"]
        if mode is DrainMode.EMPTY:
            words.append("-exit-on-completion")
            check += ' && State=="Unclaimed"'
        why = reason if reason.startswith(_OURS) else f"{_OURS}: {reason}"
        try:
            self._tools.run(
                [*words, "-check", check, "-reason", why[:200], slot.name], deadline, slot.address
            )
        except DrainingAlreadyError as error:
            self._ours_already(slot, mode, deadline, error)
        except DrainRefused as error:
            if mode is DrainMode.BUSY:
                raise PoolError(f"{slot.name} is another machine now than {slot.instance_id}") from error
            raise

    def _ours_already(self, slot: Slot, mode: DrainMode, deadline: float, error: PoolError) -> None:
        # The startd answered before its ad reached the collector: wait for the ad that shows the drain.
        end = time.monotonic() + deadline
        seen = self._look(slot, deadline)
        while seen is not None and not seen.draining and time.monotonic() < end:
            time.sleep(_LOOK_AGAIN)
            seen = self._look(slot, deadline)
        if seen is None:
            return  # it has drained and left between the two
        if seen.instance_id != slot.instance_id or not seen.drain_reason.startswith(_OURS):
            raise PoolError(f"{slot.name} is drained by someone else: {seen.drain_reason[:100]}") from error
        if mode is DrainMode.EMPTY and seen.busy:
            raise DrainRefused(f"{slot.name} is drained, and still busy") from error

    def undrain(self, slots: Sequence[Slot], deadline: float) -> None:
        """Take back a busy drain. A machine that doesn't drain is success."""
        slot = _addressed(slots)
        seen = self._look(slot, deadline)
        if seen is None or seen.instance_id != slot.instance_id:
            raise PoolError(f"{slot.name} is not in the pool as {slot.instance_id}")
        if seen.draining and not seen.drain_reason.startswith(_OURS):
            raise PoolError(f"{slot.name} is drained by someone else: {seen.drain_reason[:100]}")
        # Also where the ad shows no drain: it may be older than one that was just accepted.
        self._tools.run(["condor_drain", "-debug", *self._tools.pool_words(), "-cancel", slot.name], deadline)

    def _look(self, slot: Slot, deadline: float) -> Slot | None:
        """This slot as the collector has it now. PoolError where another startd goes by its name."""
        where, pool = self._access.collector, self._access.name
        seen = self._children.call(_COLLECTOR, deadline, ads.slot_states, where, pool, slot.name)
        return same_startd(slot, seen)

    # ---------------------------------------------------------------------------------- what is changed

    def requeue(self, schedd: str, jobs: Sequence[str], machine: str, deadline: float) -> tuple[str, ...]:
        """Give jobs of a machine that is gone back to the queue: see `condor.base.Pool.requeue`."""
        where, pool = self._access.collector, self._access.name
        return self._children.call(
            f"schedd {schedd}", deadline, requeue_jobs, where, pool, schedd, tuple(jobs), machine
        )

    def forget(self, slots: Sequence[str], deadline: float) -> None:
        """Invalidate the machine's startd and master ads in the collector."""
        self._children.call(_COLLECTOR, deadline, ads.forget_ads, self._access.collector, tuple(slots))

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        """All controllers that advertise themselves for this pool's name, this one included."""
        where, pool = self._access.collector, self._access.name
        return self._children.call(_COLLECTOR, deadline, controllers.read_controllers, where, pool)

    def announce(self, ad: ControllerAd, lifetime: float, deadline: float) -> None:
        """Advertise this controller, for `lifetime` seconds from now."""
        where, pool = self._access.collector, self._access.name
        self._children.call(_COLLECTOR, deadline, controllers.announce_controller, where, pool, ad, lifetime)

    def retract(self, ad: ControllerAd, deadline: float) -> None:
        """Withdraw this controller's ad."""
        where, pool = self._access.collector, self._access.name
        self._children.call(_COLLECTOR, deadline, controllers.retract_controller, where, pool, ad)

    def mint_token(self, launch_key: str, lifetime: float) -> str:
        """A token for the machines of one launch: its own identity, advertise rights only, for `lifetime`."""
        return self._mint_worker(user_of(self._access.worker_identity, launch_key), lifetime, _ADVERTISE)

    def mint_boot_token(self, launch_key: str, boot: float, lifetime: float) -> str:
        """As `Pool` promises it."""
        if not self._access.own_tokens:
            return self.mint_token(launch_key, lifetime)
        # No slot with it: only the ad that asks.
        rights = ("ADVERTISE_MASTER", "READ")
        return self._mint_worker(user_of(self._access.worker_identity, launch_key), boot, rights)

    def mint_own_token(self, launch_key: str, instance: str, lifetime: float) -> str:
        """A token for this one machine."""
        user = own_user(self._access.worker_identity, launch_key, instance)
        return self._mint_worker(user, lifetime, _ADVERTISE)

    def questions(self, deadline: float) -> tuple[SignedRequest, ...]:
        """What machines ask that want their own tokens."""
        where, pool = self._access.collector, self._access.name
        return self._children.call(_COLLECTOR, deadline, handover.read_questions, where, pool)

    def answer(self, answers: Sequence[Mapping[str, str]], lifetime: float, deadline: float) -> None:
        """Advertise answers to them, for `lifetime` seconds."""
        where = self._access.collector
        self._children.call(_COLLECTOR, deadline, handover.write_answers, where, answers, lifetime)

    def _mint_worker(self, user: str, lifetime: float, rights: Sequence[str]) -> str:
        return self._mint((), user, lifetime, rights, self._newest(self._keys(), self._access.signing_key))

    def mint_broker_token(self, launch_key: str, lifetime: float, instance: str = "") -> str:
        """A token for the launch, or for this one machine of it, that is good at the broker alone: no other
        daemon has its key."""
        folder = self._access.broker_keys
        if not folder:
            raise PoolError("there is no broker here: its keys have no folder")
        where = ("env", f"_CONDOR_SEC_PASSWORD_DIRECTORY={folder}")
        key = self._newest(Path(folder), self._access.broker_key)
        pattern = self._access.worker_identity
        user = own_user(pattern, launch_key, instance) if instance else user_of(pattern, launch_key)
        return self._mint(where, user, lifetime, BROKER_RIGHTS, key)

    def _keys(self) -> Path | None:
        """Where the keys are, on this machine; None where HTCondor doesn't say."""
        if self._key_folder is None:
            try:
                self._key_folder = self._tools.setting("SEC_PASSWORD_DIRECTORY")
            except PoolError:
                return None
        return Path(self._key_folder) if self._key_folder else None

    def _newest(self, folder: Path | None, key: str) -> str:
        """The key that signs now, of those that rotations have left. Tools may run elsewhere than we do."""
        return key if folder is None or self._access.tools else newest_key(folder, key)

    def _mint(
        self, before: Sequence[str], user: str, lifetime: float, rights: Sequence[str], signing_key: str
    ) -> str:
        domain = self._access.trust_domain or self._tools.setting("TRUST_DOMAIN")
        words = [*before, "condor_token_create", "-identity", f"{user}@{domain}"]
        words += ["-lifetime", str(max(1, int(lifetime)))]
        words += [word for right in rights for word in ("-authz", right)]
        words += ["-key", signing_key]
        token = self._tools.run(words, _MINT_DEADLINE).strip()
        if not _TOKEN.match(token):
            raise PoolError("condor_token_create gave no token")
        return token


def same_startd(slot: Slot, seen: Sequence[Slot]) -> Slot | None:
    """Of these slots of one name the one that is at the same address. PoolError where any is elsewhere."""
    for one in seen:
        if one.address != slot.address:
            raise PoolError(f"another startd goes by the name {slot.name}, at {one.address[:100]}")
    return seen[0] if seen else None


def _addressed(slots: Sequence[Slot]) -> Slot:
    """The slot by which the machine's startd is addressed. PoolError where it isn't one machine of ours."""
    ids = {slot.instance_id for slot in slots}
    if len(ids) != 1 or not next(iter(ids)):
        raise PoolError("only one machine of this pool's own, with its instance id, can be drained")
    where = sorted({slot.address for slot in slots})
    if len(where) != 1 or not where[0]:
        said = " and ".join(one[:100] or "nowhere" for one in where)
        raise PoolError(f"{slots[0].instance_id} is said to be at {said}: which it is isn't known")
    return slots[0]
