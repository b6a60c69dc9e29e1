"""Plans carried out on an obedient cloud: they settle, and every machine ends."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import FLAVORS, NOW, group, instance, policy, slot, snapshot, worker
from updraft.core.model import (
    Adopt,
    CloudState,
    Drain,
    DrainMode,
    DrainRecord,
    Instance,
    JobGroup,
    Known,
    Launch,
    LaunchRecord,
    LaunchState,
    LedgerView,
    MachineRecord,
    Plan,
    Questions,
    Slot,
    Snapshot,
    Terminate,
)
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy
from updraft.core.slots.kinds import kind_key


@dataclass
class World:
    """A cloud that does at once what it is told, a pool that machines join at once, and a ledger."""

    policy: Policy
    now: float = NOW
    joins: bool = True
    groups: list[JobGroup] = field(default_factory=list)
    instances: dict[str, Instance] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    records: dict[str, MachineRecord] = field(default_factory=dict)
    launches: list[LaunchRecord] = field(default_factory=list)
    questions: Questions = field(default_factory=Questions)

    def look(self) -> Snapshot:
        """What is seen of this world now."""
        shown = snapshot(
            instances=self.instances.values(),
            slots=[replace(s, heard=self.now) for s in self.slots.values()],
            groups=self.groups,
            now=self.now,
        )
        ledger = LedgerView(tuple(self.launches), tuple(self.records.values()))
        view = shown.clouds["c1"]
        found = {name: Known(self.instances.get(name), self.now) for _, name in self.questions.machines}
        listed = Known(tuple(self.instances.values()), self.now)
        return replace(shown, ledger=ledger, clouds={"c1": replace(view, machines=listed, found=found)})

    def step(self, seconds: float = 2.0) -> Plan:
        """One look, its plan carried out, and some time."""
        made = plan(self.look(), self.policy)
        self.questions = made.questions
        self.records.update({r.id: r for r in made.records})
        for action in made.actions:
            if isinstance(action, Launch):
                self._launch(action)
            elif isinstance(action, Drain):
                self._drain(action)
            elif isinstance(action, Terminate):
                for name in action.machines:
                    self.instances[name] = replace(self.instances[name], state=CloudState.TERMINATED)
                    self.slots.pop(name, None)
            else:
                assert isinstance(action, Adopt), f"unexpected in this world: {action}"
        self.now += seconds
        return made

    def _launch(self, action: Launch) -> None:
        offer = action.offer
        names = [f"i-{len(self.instances) + n}" for n in range(action.count)]
        for name in names:
            self.instances[name] = instance(
                name, launch_key=action.key, flavor=offer.flavor, launched_at=self.now
            )
            self.records[name] = MachineRecord(
                name, "c1", action.key, offer.worker_class, offer.flavor, offer.generation, self.now,
                offer.resources, "z1", image="img", price=offer.price,
            )  # fmt: skip
            if self.joins:
                whole = FLAVORS[offer.flavor][0]
                key = kind_key("default", offer.generation, "c1", offer.flavor)
                self.slots[name] = slot(name, total=whole, free=whole, kind=key, launch_key=action.key)
        self.launches.append(
            LaunchRecord(
                action.key,
                "c1",
                "z1",
                offer.flavor,
                "on-demand",
                offer.worker_class,
                "img",
                offer.generation,
                action.count,
                offer.resources,
                offer.price,
                self.now,
                LaunchState.ACCEPTED,
                tuple(names),
            )
        )

    def _drain(self, action: Drain) -> None:
        name = action.machine
        record = self.records[name]
        drain = DrainRecord(action.mode, self.now, action.reason, self.now, action.deadline)
        self.records[name] = replace(record, drain=drain)
        if action.mode is DrainMode.EMPTY:
            self.slots.pop(name)
        else:
            self.slots[name] = replace(self.slots[name], draining=True, drain_reason="updraft: x")

    @property
    def alive(self) -> list[Instance]:
        """Instances that still cost money."""
        return [found for found in self.instances.values() if found.alive]


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=4),
    st.sampled_from([None, 3, 20]),
    st.sampled_from([None, 12]),
    st.integers(0, 2),
)
def test_11_a_plan_carried_out_leaves_nothing_more_to_do(
    sizes: list[int], machines: int | None, cores: int | None, minimum: int
) -> None:
    """Rule 11: on an obedient cloud the second look launches, drains and ends nothing."""
    limits = Limits(machines, cores)
    world = World(policy(worker(min_machines=minimum), limits=limits))
    world.groups = [group(f"g{n}", size) for n, size in enumerate(sizes)]
    world.step()
    world.step()  # an unproven image is tried first: the second look may launch the rest
    world.step()
    made = world.step()
    assert made.actions == ()


@pytest.mark.slow
@given(st.integers(1, 60), st.booleans())
def test_3_nothing_is_launched_twice_while_it_boots(jobs: int, answered: bool) -> None:
    """Rule 3: what was asked for counts until it joins, also where the cloud never answered the launch."""
    world = World(policy(), joins=False)
    world.groups = [group("g", jobs)]
    world.step()
    before = len(world.instances)
    if not answered:
        world.launches = [replace(row, state=LaunchState.UNKNOWN, ids=()) for row in world.launches]
        world.records.clear()
        world.instances = {}
    for _ in range(10):
        world.step()
    assert len(world.instances) in ((before,) if answered else (0,))


@pytest.mark.slow
@given(st.integers(1, 40), st.integers(0, 3), st.booleans())
def test_5_every_machine_ends(jobs: int, minimum: int, joins: bool) -> None:
    """Rule 5: when the work is over all go but the minimum; what never joins goes at its deadline."""
    world = World(policy(worker(min_machines=minimum, boot_deadline=300.0)), joins=joins)
    world.groups = [group("g", jobs)]
    for _ in range(3):
        world.step()
    world.groups = []
    if not joins:
        world.policy = policy(worker(min_machines=0, boot_deadline=300.0))
    for _ in range(40):
        world.step(60.0)
    assert len(world.alive) == (minimum if joins else 0)


def test_5_all_goes_when_the_pool_is_destroyed() -> None:
    """Rule 5: closing takes away machines that joined and machines that never did."""
    world = World(policy(worker(min_machines=2)))
    world.groups = [group("g", 30)]
    for _ in range(3):
        world.step()
    world.joins = False
    world.groups = [group("g", 60)]
    world.step()
    assert world.alive
    world.policy = policy(worker(min_machines=2), closing=True)
    for _ in range(10):
        world.step(30.0)
    assert world.alive == []


@pytest.mark.slow
def test_8_a_broken_image_costs_a_few_machines() -> None:
    """Rule 8: with 1,000 jobs waiting and no boot that joins, a day costs a few machines, not hundreds."""
    world = World(policy(worker(boot_deadline=300.0)), joins=False)
    world.groups = [group("g", 1000)]
    while world.now < NOW + 86_400:
        world.step(60.0)
    assert len(world.instances) <= 8 + 7 + 24
