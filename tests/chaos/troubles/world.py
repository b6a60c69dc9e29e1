"""The pool of a run: what is there to be hurt, and the journal of what was done to it."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock

from tests.chaos.judged.evidence import CloudLog, Deed, MachineLife, read_cloud
from tests.chaos.troubles.script import Happening
from tests.rigs.pools.resident import WatchedPool
from tests.waiting import deadline
from updraft.clouds.local.client import Client
from updraft.clouds.local.faults import Fault
from updraft.clouds.local.process import run_in

USER, HOSTILE = "alice", "bob"
JOB_LOG = f"/home/{USER}/chaos.log"
STATE = "/var/lib/updraft"
SERVICE = "/run/updraft-machine/updraft"
End = Callable[[], object]


@dataclass
class World:
    """One pool and what was done to it. `end` undoes what a happening began; None where nothing is left."""

    pool: WatchedPool
    deeds: list[Deed] = field(default_factory=list)
    clusters: dict[int, tuple[int, float]] = field(default_factory=dict)
    _read: int = 0
    _lines: list[str] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def client(self) -> Client:
        """The cloud's administrator, whose own calls go through."""
        return self.pool.cloud.client(spared=True)

    def log(self) -> CloudLog:
        """What the cloud has written down by now."""
        with self._lock, self.pool.cloud.events.open() as file:
            file.seek(self._read)
            text = file.read()
            whole = text[: text.rfind("\n") + 1]
            self._read += len(whole.encode())
            self._lines += whole.splitlines()
            return read_cloud(self._lines)

    def running(self) -> list[MachineLife]:
        """The machines that run and that nothing has befallen that ends them, the oldest first."""
        hurt = {deed.machine for deed in self.deeds}
        found = [one for one in self.log().machines.values() if one.state == "running" and one.id not in hurt]
        return sorted(found, key=lambda one: (one.times["pending"], one.id))

    def victim(self, one: Happening) -> str | None:
        """A machine for this happening to befall, None where there is none."""
        there = self.running()
        return there[one.draw % len(there)].id if there else None

    def a_running_job(self, one: Happening) -> str | None:
        """A job that runs, None where none does."""
        rows = self.head(
            "condor_q", "-allusers", "-constraint", f'JobStatus == 2 && Owner == "{USER}"', "-af:j", "1"
        )
        jobs = sorted(line.split()[0] for line in rows.splitlines() if line.strip())
        return jobs[one.draw % len(jobs)] if jobs else None

    def head(self, *argv: str, user: str | None = None, stdin: str | None = None) -> str:
        """What a command on the head prints. Raises RuntimeError where it fails."""
        done = self.pool.on_head(*argv, user=user, stdin=stdin, timeout=deadline(40))
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)[:200]}: {(done.stdout + done.stderr).strip()[-300:]}")
        return done.stdout

    def sh(self, script: str, stdin: str | None = None) -> str:
        """What a shell on the head prints. Raises RuntimeError where it fails."""
        return self.head("sh", "-c", script, stdin=stdin)

    def in_machine(self, machine: str, script: str) -> None:
        """Run a shell on a machine. Raises RuntimeError where it fails."""
        done = run_in(self.pool.cloud, machine, ("sh", "-c", script), timeout=deadline(20))
        if done.returncode != 0:
            raise RuntimeError(f"{script}: {(done.stdout + done.stderr).strip()[-300:]}")

    def mend_machine(self, machine: str, script: str) -> None:
        """The same, to undo what was done to a machine: with one that has ended it is over.

        Raises RuntimeError where it fails on one that runs.
        """
        try:
            self.in_machine(machine, script)
        except Exception:
            if self.log().machines[machine].state == "running":
                raise

    def fault(self, *faults: Fault) -> None:
        """Have these faults of the cloud besides those that there are."""
        self.client.add_faults(*faults)

    def submit(self, text: str, count: int, user: str = USER) -> int:
        """Submit jobs; those of the honest user are all expected to end well."""
        at = time.time()
        cluster = self.pool.submit(text, user=user)
        if user == USER:
            self.clusters[cluster] = (count, at)
        return cluster

    def note(self, one: Happening, *, machine: str = "", job: str = "") -> None:
        """Write down that it begins now, and to what."""
        now = time.time()
        with self._lock:
            self.deeds.append(Deed(one.what, now, now + one.lasts, machine, job))

    def failed(self, one: Happening, why: str) -> None:
        """Write down that it couldn't be done."""
        now = time.time()
        with self._lock:
            self.deeds.append(Deed(one.what, now, now, failed=why))

    def befallen(self, machine: str, ended: float) -> None:
        """It ended for this machine at another time than was meant."""
        with self._lock:
            self.deeds = [replace(d, ended=ended) if d.machine == machine else d for d in self.deeds]


def drawn(one: Happening) -> random.Random:
    """What a happening draws its choices from."""
    return random.Random(one.draw)


Does = Callable[[World, Happening], End | None]
