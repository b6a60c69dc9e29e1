"""The state of a local cloud: its machines, their tags, its quotas, and what may be asked of it."""

import ipaddress
import secrets
import threading
import time
from collections.abc import Container, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from updraft.clouds.local.config import Flavor, LocalCloudConfig, Quotas, host_name
from updraft.clouds.local.faults import Fault, FaultKind, Faults, What
from updraft.clouds.local.service.boots import Boots, at_once
from updraft.clouds.local.service.capacity import Capacity, what
from updraft.clouds.local.service.events import EventLog
from updraft.clouds.local.service.instance import (
    ALIVE,
    PENDING,
    RUNNING,
    STOPPING,
    TERMINATED,
    Machine,
    Order,
)
from updraft.clouds.local.service.machine import Blueprint, Process
from updraft.clouds.local.service.refusals import RefusedError
from updraft.clouds.local.service.shelf import Shelf

_REBOOT_GRACE = 20.0  # seconds for what runs on a machine to end before it is started anew


class Cloud:
    """A cloud that lives in this process. Every method may be called by any thread."""

    def __init__(
        self, config: LocalCloudConfig, folder: Path, common_layer: Path, log: EventLog | None = None
    ) -> None:
        self.config = config
        self.log = log or EventLog(None)
        self.shelf = Shelf(config.images, folder / "images")
        self._folder = folder
        self._common_layer = common_layer
        self._lock = threading.RLock()
        self._machines: dict[str, Machine] = {}
        self._keys: dict[str, tuple[str, ...]] = {}
        self._faults = Faults()
        self._capacity = Capacity(config, self._machines, self._faults)
        self._boots = Boots(at_once())

    def run(self, order: Order) -> list[dict[str, Any]]:
        """Launch up to `count` machines: as many as quotas and capacity allow, or refuse if that is none.

        The same key again returns the machines of its first call and makes none.
        """
        with self._lock:
            if order.key in self._keys:
                return [self._machines[id_].show() for id_ in self._keys[order.key] if id_ in self._machines]
            flavor = self._capacity.checked(order, self.shelf.names())
            count = self._capacity.room(order, flavor)
            made = [self._make(order, flavor) for _ in range(count)]
            self._keys[order.key] = tuple(machine.id for machine in made)
            shown = [machine.show() for machine in made]
        for machine in made:
            threading.Thread(
                target=self._boot, args=(machine,), name=f"boot-{machine.id}", daemon=True
            ).start()
        return shown

    def page(
        self, tags: Mapping[str, str], after: str, only: Container[str] | None = None
    ) -> tuple[list[dict[str, Any]], str]:
        """One page of the machines with these tags, and where the next begins ("" where this is the last).

        `only` are those that are asked for by their ids, None for all.
        """
        limit, now = self.config.page_size, time.time()
        with self._lock:
            self._forget_old()
            ids = sorted(
                id_
                for id_, m in self._machines.items()
                if tags.items() <= m.tags.items() and id_ > after and (only is None or id_ in only)
            )
            then = now - self._faults.lag(now)
            by_id = only is not None
            page = [self._listed(self._machines[id_], then, now, by_id) for id_ in ids[:limit]]
        return [one for one in page if one is not None], ids[limit - 1] if len(ids) > limit else ""

    def _listed(self, machine: Machine, then: float, now: float, by_id: bool) -> dict[str, Any] | None:
        """The machine as this answer has it, which may be wrong on request; None where it isn't in it."""
        state = machine.state_at(then)
        if state:
            state = self._faults.listed_as(machine.id, state, what(machine.order), now, by_id=by_id)
        return machine.show(state) if state else None

    def terminate(self, ids: Iterable[str]) -> None:
        """End these machines: init is asked, after the grace the plug is pulled. Unknown ones are gone."""
        for machine in self._known(ids):
            self._stop(machine, "terminated by the API")

    def crash(self, ids: Iterable[str]) -> None:
        """Pull the plug of these machines: they never come to know it."""
        for machine in self._known(ids):
            with self._lock:
                machine.why_ended = machine.why_ended or "its host died"
                machine.stop_now.set()
                process = machine.process
            if process is not None:
                process.kill()

    def reboot(self, ids: Iterable[str]) -> None:
        """Start these machines anew, each on its own disk, with the id, address and tags that it has."""
        for machine in self._known(ids):
            process = machine.process
            if machine.state == RUNNING and process is not None:
                threading.Thread(target=process.reboot, args=(_REBOOT_GRACE,), daemon=True).start()

    def notice(self, ids: Iterable[str], seconds: float | None = None) -> None:
        """Give these machines a spot notice: they end after so many seconds (None: the cloud's own)."""
        left = self.config.spot_notice if seconds is None else seconds
        for machine in self._known(ids):
            with self._lock:
                if machine.notice_at is not None:
                    continue
                machine.notice_at = time.time() + left
            timer = threading.Timer(left, self._stop, (machine, "its spot capacity was taken back"))
            timer.daemon = True
            timer.start()

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Write tags; None removes one. Unknown machines are passed over."""
        for machine in self._known(ids):
            with self._lock:
                for name, value in tags.items():
                    if value is None:
                        machine.tags.pop(name, None)
                    else:
                        machine.tags[name] = value

    def make_image(self, id_: str, name: str, tags: Mapping[str, str]) -> str:
        """Begin to make an image of a running machine, and say its id."""
        with self._lock:
            machine = self._machines.get(id_)
            pid = machine.process.inside if machine and machine.process else None
        if machine is None or pid is None:
            raise RefusedError("bad-request", f"there is no running machine {id_!r}")
        layers = self.shelf.layers(machine.order.image)
        return self.shelf.create(name, tags, layers, self._folder / id_ / "disk/upper", pid)

    def console(self, id_: str) -> str:
        """The end of a machine's console; empty for one that isn't known."""
        machine = self._machines.get(id_)
        return machine.console.read() if machine else ""

    def offers(self) -> list[dict[str, Any]]:
        """Every flavor in every zone on every market that it is sold on, with its price and what is left."""
        with self._lock:
            return self._capacity.offers()

    def quota(self) -> dict[str, int | None]:
        """What is left of each quota, None where there is no such quota, and what is used of it."""
        with self._lock:
            return self._capacity.quota()

    def set_faults(self, faults: list[Fault]) -> None:
        """Replace the faults by these."""
        with self._lock:
            self._faults.set(faults, time.time())

    def add_faults(self, faults: list[Fault]) -> None:
        """Have these faults too."""
        with self._lock:
            self._faults.add(faults, time.time())

    def set_quotas(self, quotas: Quotas) -> None:
        """Replace the project's quotas; machines beyond the new ones stay."""
        with self._lock:
            self._capacity.quotas = quotas

    def faults_before(self, call: str, what: What | None = None) -> list[Fault]:
        """What the API call that has just come in suffers before anything is done."""
        with self._lock:
            return self._faults.before(call, what, time.time())

    def faults_after(self, call: str, what: What | None = None) -> list[Fault]:
        """What it suffers once it is done."""
        with self._lock:
            return self._faults.after(call, what, time.time())

    def at(self, address: str) -> Machine | None:
        """The live machine at this address."""
        with self._lock:
            return next(
                (m for m in self._machines.values() if m.address == address and m.state in ALIVE), None
            )

    def _known(self, ids: Iterable[str]) -> list[Machine]:
        with self._lock:
            return [self._machines[id_] for id_ in ids if id_ in self._machines]

    def _make(self, order: Order, flavor: Flavor) -> Machine:
        now = time.time()
        address = self._capacity.take_address(order, now)
        machine = Machine(f"i-{secrets.token_hex(8)}", order, flavor, address, dict(order.tags))
        machine.times[PENDING] = now
        machine.has_user_data = not self._faults.machine(FaultKind.NO_USER_DATA, what(order), now)
        machine.wants_token = self._faults.machine(FaultKind.WANTS_TOKEN, what(order), now)
        self._machines[machine.id] = machine
        self._note(machine)
        return machine

    def _note(self, machine: Machine) -> None:
        """Write down the state that a machine has entered."""
        order = machine.order
        self.log.write(
            machine=machine.id,
            state=machine.state,
            why=machine.why_ended,
            key=order.key,
            flavor=order.flavor,
            zone=order.zone,
            market=order.market,
            cores=machine.flavor.cpus,
            address=machine.address,
            role=order.role,
        )

    def _boot(self, machine: Machine) -> None:
        order, now = machine.order, time.time()
        with self._lock:
            fault = self._faults.boot(what(order), now)
        if fault is not None:
            self._enter(machine, RUNNING)
            self._suffer(machine, fault)
        if not self._boots.one(lambda: self._power_on(machine, fault), machine.stop_now):
            self._enter(machine, TERMINATED)

    def _suffer(self, machine: Machine, fault: Fault) -> None:
        """What a boot suffers before its start; returns when the machine is to be started."""
        if fault.kind is FaultKind.NEVER_BOOTS:
            machine.console.write(b"Kernel panic - not syncing: VFS: Unable to mount root fs (on request)\n")
            machine.stop_now.wait()
        elif fault.kind is FaultKind.SLOW_BOOT:
            machine.console.write(f"firmware: waiting {fault.seconds} s (on request)\n".encode())
            machine.stop_now.wait(fault.seconds)

    def _suffer_later(self, machine: Machine, process: Process, fault: Fault | None) -> None:
        """What a boot suffers once its own system has started; to whoever asks, a machine that hangs runs."""
        if fault is None or fault.kind not in (FaultKind.BOOT_CRASHES, FaultKind.BOOT_HANGS):
            return
        hangs = fault.kind is FaultKind.BOOT_HANGS
        then = threading.Timer(fault.seconds, process.freeze if hangs else partial(self.crash, [machine.id]))
        then.daemon = True
        then.start()

    def _power_on(self, machine: Machine, fault: Fault | None) -> threading.Event | None:
        """Start the machine; returns what is set once it has booted, None where it could not be started."""
        config = self.config
        blueprint = Blueprint(
            id=machine.id,
            folder=self._folder / machine.id,
            layers=(*self.shelf.layers(machine.order.image), str(self._common_layer)),
            flavor=machine.flavor,
            name=host_name(machine.address),
            address=machine.address,
            prefix=ipaddress.IPv4Interface(config.network).network.prefixlen,
            gateway=config.gateway,
        )
        process = Process(blueprint, machine.console)
        try:
            process.start(
                entered=lambda: self._suffer_later(machine, process, fault),
                ended=lambda: self._enter(machine, TERMINATED),
            )
        except Exception as error:  # whatever it is, the machine has failed and the cloud goes on
            machine.why_ended = "it could not be started"
            machine.console.write(f"cloud: this machine could not be started: {error}\n".encode())
            self._enter(machine, TERMINATED)
            return None
        with self._lock:
            machine.process = process
            self._enter(machine, RUNNING)
            too_late = machine.stop_now.is_set()
        if too_late:
            process.kill()
        return process.booted

    def _stop(self, machine: Machine, why: str) -> None:
        with self._lock:
            if machine.state not in (PENDING, RUNNING):
                return
            machine.why_ended = machine.why_ended or why
            self._enter(machine, STOPPING)
            machine.stop_now.set()
            process = machine.process
        if process is not None:
            threading.Thread(target=self._shut_down, args=(process,), daemon=True).start()

    def _shut_down(self, process: Process) -> None:
        process.ask_to_stop()
        if not process.wait(self.config.stop_grace):
            process.kill()

    def _enter(self, machine: Machine, state: str) -> None:
        """States only go forward."""
        order = (PENDING, RUNNING, STOPPING, TERMINATED)
        with self._lock:
            if order.index(state) > order.index(machine.state):
                machine.state = state
                machine.times[state] = time.time()
                if state == TERMINATED and not machine.why_ended:
                    machine.why_ended = "it was shut down from inside"
                self._note(machine)

    def _forget_old(self) -> None:
        before = time.time() - self.config.listed_after_end
        old = [id_ for id_, m in self._machines.items() if m.times.get(TERMINATED, before) < before]
        for id_ in old:
            del self._machines[id_]
