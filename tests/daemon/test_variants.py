"""A whole controller in virtual time, real ads and real matching: machines made as jobs, or classes, want."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.bindings import htcondor2  # noqa: F401 - its functions are part of the language of ads
from tests.rigs.pools.virtualpool import Queue, VirtualPool
from tests.rigs.rig import Rig, policy
from updraft.act import Actor, Lanes
from updraft.clouds.base import TAG_VARIANT
from updraft.clouds.fake import FakeInstance, Site
from updraft.core.matching.bulk import judge_all
from updraft.core.matching.match import Matcher
from updraft.core.matching.memory import Memo
from updraft.core.model import JobGroup, Kind, LaunchState, Reason, Resources, Terms, Verdicts
from updraft.core.plan import plan
from updraft.core.settings import Policy, WorkerClass
from updraft.daemon import Daemon, Parts
from updraft.daemon.preparing import Preparer
from updraft.ledger import Ledger
from updraft.observe import VIRTUAL, Observer
from updraft.sim.sites import real_kind

ASK = Resources(1, 1024, 1024)


class MatchingPool(VirtualPool):
    """A pool whose negotiator reads the ads of jobs and machines."""

    policy: Policy

    def kind(self, site: Site, instance: FakeInstance) -> Kind:
        return real_kind(self.policy, instance)

    def ad(self, site: Site, instance: FakeInstance) -> str:
        return self.kind(site, instance).ad

    def matches(self, queue: Queue, site: Site, instance: FakeInstance) -> bool:
        job = JobGroup("g", "schedd", queue.owner, f"{queue.owner}@pool", queue.ad, ASK, 1)
        return Matcher().judge(job, self.kind(site, instance), self.clock()).copies > 0


class Judging:
    """The real matching, in line."""

    def __init__(self) -> None:
        self.memo = Memo()

    def verdicts(
        self, groups: Sequence[JobGroup], kinds: Sequence[Kind], now: float, deadline: float
    ) -> Verdicts:
        return judge_all(groups, kinds, now, self.memo)


class MatchingRig(Rig):
    """The rig with a pool that matches."""

    def __init__(self, state: Path, rules: Policy) -> None:
        super().__init__(state)
        self.pool: MatchingPool = MatchingPool(self.clock, [self.site])
        self.pool.queues = {}
        self.use(rules)

    def use(self, rules: Policy) -> None:
        self.rules = self.pool.policy = rules

    def submit(self, owner: str, idle: int, said: str = "", terms: Terms | None = None) -> Queue:
        """Jobs of one user, with what is `said` in their ads and what was read of that."""
        ad = (
            f'[ MyType = "Job"; Owner = "{owner}"; User = "{owner}@pool"; RequestCpus = 1; '
            f"RequestMemory = 1024; RequestDisk = 1024; Requirements = true; {said} ]"
        )
        queue = Queue(idle, owner=owner, ad=ad, terms=terms or Terms())
        self.pool.queues[f"schedd{len(self.pool.queues)}"] = queue
        return queue

    def controller(self) -> Daemon:
        if self.ledger is not None:
            self.ledger.close()
        self.ledger = ledger = Ledger(self.state / "ledger.db")
        parts = Parts(self.rules, self.pool, {"c1": self.cloud}, self.user_data)
        self.observer = Observer(
            policy=self.rules, pool=self.pool, clouds=parts.clouds, ledger=ledger, asking=VIRTUAL
        )  # fmt: skip
        self.preparer = Preparer(ledger=ledger, matcher=Judging(), stopwatch=VIRTUAL.stopwatch)
        self.actor = Actor(
            policy=self.rules, pool=self.pool, clouds=parts.clouds, user_data=parts.user_data,
            ledger=ledger, clock=self.clock, lanes=Lanes(width=0),
        )  # fmt: skip
        return Daemon(
            parts=parts, ledger=ledger, observer=self.observer, preparer=self.preparer,
            actor=self.actor, plan=plan, clock=self.clock, switch=self.switch, stopwatch=lambda: 0.0,
            notify=lambda _s: None,
        )  # fmt: skip

    def machines(self) -> dict[str, tuple[str, str, set[str]]]:
        """Of each machine that was ever made: its image, its variant, and whose jobs it ran."""
        return {
            one.id: (
                one.image,
                one.tags.get(TAG_VARIANT, ""),
                self.pool.workers[one.id].users if one.id in self.pool.workers else set(),
            )
            for one in self.site.instances.values()
        }


def allowing(**changes: object) -> Policy:
    worker = WorkerClass(
        "default", "g1", ("c1",), images={"c1": "img"}, idle_limit=60, boot_deadline=120,
        images_allowed=("alma9",), keep_alive_max=600.0,
    )  # fmt: skip
    return replace(policy(), classes={"default": replace(worker, **changes)})  # type: ignore[arg-type]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[MatchingRig]:
    made = MatchingRig(tmp_path, allowing())
    yield made
    made.close()


ALMA = 'UpdraftImage = "alma9";', Terms(images={"": "alma9"})


def test_a_job_gets_the_image_that_it_asks_for_and_no_plain_job_lands_there(rig: MatchingRig) -> None:
    wants, plain = rig.submit("alice", 2, *ALMA), rig.submit("bob", 2)
    daemon = rig.controller()
    rig.turn(daemon, 40)
    assert (wants.idle, plain.idle) == (0, 0)
    assert sorted(rig.machines().values()) == [
        ("alma9", "image=alma9", {"alice"}),
        ("img", "", {"bob"}),
    ]
    # Nothing more is bought, and all of it goes.
    rig.pool.finish()
    rig.turn_to_zero(daemon, 200)
    assert len(rig.machines()) == 2
    assert rig.alive() == []


def test_an_image_that_is_not_allowed_is_not_bought(rig: MatchingRig) -> None:
    wants = rig.submit("mallory", 2, 'UpdraftImage = "windows";', Terms(images={"": "windows"}))
    rig.turn(rig.controller(), 40)
    assert rig.machines() == {}
    assert wants.idle == 2


def test_machines_of_one_user_are_for_that_user_only(rig: MatchingRig) -> None:
    rig.use(allowing(owner_only=True))
    alice, bob = rig.submit("alice", 1), rig.submit("bob", 1)
    daemon = rig.controller()
    rig.turn(daemon, 40)
    assert (alice.idle, bob.idle) == (0, 0)
    assert sorted(rig.machines().values()) == [
        ("img", "user=alice", {"alice"}),
        ("img", "user=bob", {"bob"}),
    ]
    # Room on a machine of one's own is room; room on another's is none.
    rig.submit("alice", 1)
    rig.turn(daemon, 20)
    assert len(rig.machines()) == 2


@pytest.mark.slow
def test_a_machine_stays_idle_as_long_as_its_job_asked(rig: MatchingRig) -> None:
    rig.submit("alice", 1, "UpdraftKeepAlive = 300;", Terms(keep_alive=300.0))
    daemon = rig.controller()
    rig.turn(daemon, 40)
    rig.pool.finish()
    rig.turn(daemon, 200)
    assert len(rig.alive()) == 1
    rig.turn_to_zero(daemon, 200)
    assert [variant for _, variant, _ in rig.machines().values()] == ["keep_alive=300"]
    assert rig.alive() == []


def test_a_lost_ledger_knows_variants_by_their_tags(rig: MatchingRig) -> None:
    rig.submit("alice", 2, *ALMA)
    rig.turn(rig.controller(), 40)
    rig.lose_ledger()
    daemon = rig.controller()
    rig.turn(daemon, 10)
    assert rig.ledger is not None
    [record] = rig.ledger.view(rig.clock()).machines
    assert (record.adopted, record.variant.text, record.image) == (True, "image=alma9", "alma9")


def test_a_tag_that_nobody_can_read_is_told_of_and_stops_nothing(rig: MatchingRig) -> None:
    rig.submit("alice", 2, *ALMA)
    rig.turn(rig.controller(), 40)
    [machine] = rig.alive()
    rig.site.tag(machine, {TAG_VARIANT: "image=a&image=b;\x00$(id)"})
    rig.lose_ledger()
    daemon = rig.controller()
    rig.turn(daemon, 10)
    assert rig.ledger is not None
    told = [event.text for event in rig.ledger.events() if event.code == "odd-variant"]
    assert len(told) == 1, "it is told once, not at each look"
    assert machine in told[0]
    rig.pool.finish()
    rig.turn_to_zero(daemon, 300)
    assert rig.alive() == []


def test_what_the_configuration_no_longer_allows_is_not_launched(rig: MatchingRig) -> None:
    rig.submit("alice", 2, *ALMA)
    daemon = rig.controller()
    rig.actor.reconfigure(  # the next decision is still one of the old configuration
        allowing(images_allowed=()), rig.pool, {"c1": rig.cloud}, rig.user_data
    )
    daemon.cycle()
    assert rig.ledger is not None
    [launch] = rig.ledger.view(rig.clock()).launches
    assert launch.state is LaunchState.REFUSED
    assert launch.error is not None
    assert "doesn't allow the image 'alma9'" in launch.error.text
    assert rig.alive() == []


def test_a_machine_that_is_let_go_keeps_no_tag_of_ours(rig: MatchingRig) -> None:
    rig.submit("alice", 2, *ALMA)
    daemon = rig.controller()
    rig.turn(daemon, 40)
    [machine] = rig.alive()
    assert rig.ledger is not None
    [record] = rig.ledger.view(rig.clock()).machines
    rig.ledger.remember([replace(record, let_go=Reason("operator", "it stays"))])
    rig.turn(daemon, 6)
    assert not [tag for tag in rig.site.instances[machine].tags if tag.startswith("updraft:")]
