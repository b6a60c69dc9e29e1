"""When a decision may be left out: nothing has changed since the last one, and nothing is due by itself.

With nobody waiting, nothing on its way and every machine either at work or idle for less than its limit, the
planner's answer depends on the time only through idle limits and lifetimes. Until the first of these passes,
all that a decision would do is to note that the busy machines are still busy: that is caught up with.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from updraft.core.machines.scalein import paid_for
from updraft.core.model import MachineRecord, Plan
from updraft.core.settings import Policy
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.fleet import Worker
from updraft.sim.world.leanledger import LeanLedger


class Steady:
    """Says for each cycle whether the planner has to be asked.

    `machines` are all that ever joined, by their ids; `changes` says a number that grows with every change.
    """

    def __init__(
        self,
        policy: Policy,
        ledger: LeanLedger,
        agenda: Agenda,
        machines: Mapping[str, Worker],
        changes: Callable[[], int],
    ) -> None:
        self._policy = policy
        self._ledger = ledger
        self._agenda = agenda
        self._machines = machines
        self._changes = changes
        self._never = policy.closing or any(worker.spare for worker in policy.classes.values())
        self._seen = -1
        self._until = -math.inf
        self._quiet_at: float | None = None

    def wakes(self) -> bool:
        """Whether this cycle needs a decision. If so, the ledger is as if every cycle had had one."""
        now = self._agenda.now
        changes = self._changes()
        if changes == self._seen and now < self._until:
            self._quiet_at = now
            return False
        if self._quiet_at is not None and self._ledger.at_work is not None:
            self._ledger.at_work = replace(self._ledger.at_work, at=self._quiet_at)
        self._quiet_at = None
        self._seen = changes
        return True

    def decided(self, plan: Plan) -> None:
        """Learn from a plan, once it was carried out, until when nothing can come of another."""
        self._until = -math.inf
        unsettled = plan.actions or plan.settled or plan.cooldowns or plan.groups or plan.warnings
        asked = plan.questions.machines or plan.questions.jobs  # and not to be asked again
        if self._never or unsettled or asked or self._changes() != self._seen:
            return
        live = [record for record in self._ledger.machines.values() if record.ended_at is None]
        due = [self._due(record) for record in live]
        self._until = min(due, default=math.inf)

    def _due(self, record: MachineRecord) -> float:
        """When something may be due of this machine."""
        worker = self._policy.classes.get(record.worker_class)
        settling = (
            record.joined_at is None
            or record.last_claimed_at is None
            or record.drain is not None
            or record.silent_since is not None
            or record.missing_since is not None
            or record.terminate_asked_at is not None
        )
        if worker is None or settling:
            return -math.inf
        old = record.requested_at + worker.lifetime
        machine = self._machines.get(record.id)
        if machine is not None and machine.busy:
            return old
        due, now = (record.last_claimed_at or 0.0) + worker.idle_limit, self._agenda.now
        return min(old, due if now < due else paid_for(record, self._policy, now) or due)
