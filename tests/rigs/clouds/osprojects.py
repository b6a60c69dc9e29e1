"""One controller over several real OpenStack projects: the real planner and actor, a pool without HTCondor.

The pool takes a machine for joined once its cloud's own listing shows it running with an address: fake guests
boot nothing. Every call to the clouds is noted where the SDK makes it.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit
from uuid import uuid4

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from openstack.config import OpenStackConfig

from tests.bench.daemon.quiet import Quiet
from tests.bench.decision import crowd
from tests.rigs.clouds.made import made
from updraft.act import Actor
from updraft.app import wiring
from updraft.clouds.cloud import Cloud
from updraft.clouds.paced import Paced
from updraft.condor.base import PoolSlots
from updraft.condor.process.judge import Judge
from updraft.core.model import (
    Child,
    CloudOffer,
    CloudState,
    CollectorView,
    DrainMode,
    Instance,
    JobGroup,
    Launch,
    Resources,
    ScheddView,
    Slot,
)
from updraft.core.plan import plan
from updraft.core.settings import Policy, WorkerClass
from updraft.core.slots.catalogue import imagine, usable
from updraft.core.slots.kinds import kind_key
from updraft.daemon import Daemon, Parts, Switch
from updraft.ledger import Ledger

CLASS, GENERATION, SCHEDD = "worker", "g1", "head.projects.test"
JOB = Resources(1, 512, 1 << 20)
IDLE_LIMIT = 2.0


@dataclass(frozen=True)
class Call:
    """One call of the SDK: when it began and ended (monotonic), and its answer's status, 0 for none."""

    method: str
    path: str
    begun: float
    ended: float
    status: int


@contextmanager
def noted() -> Iterator[list[Call]]:
    """Every call that this process makes to any OpenStack service meanwhile."""
    calls: list[Call] = []
    asked = Session.request

    def request(self: Session, url: str, method: str, **options: Any) -> Any:
        begun, status = time.monotonic(), 0
        try:
            answer = asked(self, url, method, **options)
            status = answer.status_code
            return answer
        finally:
            calls.append(Call(method, urlsplit(url).path, begun, time.monotonic(), status))

    with mock.patch.object(Session, "request", request):
        yield calls


@dataclass
class Project:
    """A project by the name that its cloud has in clouds.yaml, and how many machines are to be had there."""

    name: str
    machines: int
    settings: Mapping[str, object] = field(default_factory=dict)
    used: int = 0

    def compute(self) -> Adapter:
        """Its compute service, past any driver."""
        region = OpenStackConfig().get_one(self.name)
        return Adapter(
            region.get_session(),
            service_type="compute",
            region_name=region.get_region_name(),
            default_microversion="2.52",
        )

    def smallest(self) -> str:
        """The name of its smallest flavor."""
        found = self.compute().get("/flavors/detail").json()["flavors"]
        return str(min(found, key=lambda one: (one["vcpus"], one["ram"]))["name"])

    def in_use(self) -> int:
        """How many of everybody's machines its quota counts."""
        return int(self.compute().get("/limits").json()["limits"]["absolute"]["totalInstancesUsed"])


def settings_given() -> dict[str, object]:
    """What the environment says of the machines of tests, where the driver can't find it out by itself."""
    network = os.environ.get("UPDRAFT_TEST_OS_NETWORK")
    return {"networks": [network]} if network else {}


@contextmanager
def quotas(admin: str, projects: list[Project]) -> Iterator[None]:
    """Each project may have just its number of machines more than it has; as it was before, afterwards."""
    hand = Project(admin, 0).compute()
    with ExitStack() as stack:
        for project in projects:
            where = f"/os-quota-sets/{project.compute().get_project_id()}"
            before = hand.get(where).json()["quota_set"]["instances"]
            project.used = project.in_use()
            _set(hand, where, project.used + project.machines)
            stack.callback(_set, hand, where, before)
        yield


def _set(hand: Adapter, where: str, machines: int) -> None:
    hand.put(where, json={"quota_set": {"instances": machines, "force": True}})


class Watched:
    """A driver, and what its last listing showed: so the pool knows who has joined without a call."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.name = driver.name
        self.shown: tuple[Instance, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def machines(self) -> tuple[Instance, ...]:
        self.shown = self.driver.machines()
        return self.shown

    def joined(self) -> list[Instance]:
        """Those that run and have an address."""
        return [one for one in self.shown if one.state is CloudState.RUNNING and one.address]


def _paced(watched: Watched) -> Cloud:
    cloud: Cloud = watched.cloud
    assert cloud.traits.pace is not None
    paced = Paced(watched, cloud.traits.pace)
    return replace(cloud, machines=paced, memory=paced)


class JoiningPool(Quiet):
    """Implements `updraft.condor.base.Pool`: `jobs` jobs want a machine each; one that is drained leaves."""

    def __init__(
        self, pool: str, clouds: Mapping[str, tuple[Watched, CloudOffer]], worker: WorkerClass
    ) -> None:
        self.jobs = 0
        self._clouds = clouds
        self._drained: set[str] = set()
        self._offers = {name: offer for name, (_, offer) in clouds.items()}
        self._kinds = {
            name: kind_key(CLASS, GENERATION, name, offer.flavor) for name, offer in self._offers.items()
        }
        self._ads = {
            kind: imagine(worker, self._offers[name], worker.images[name], pool, kind).ad
            for name, kind in self._kinds.items()
        }

    def standing(self) -> list[Instance]:
        """The machines in the pool."""
        joined = [one for watched, _ in self._clouds.values() for one in watched.joined()]
        return sorted((one for one in joined if one.id not in self._drained), key=lambda one: one.id)

    def schedds(self, deadline: float) -> tuple[str, ...]:
        return (SCHEDD,)

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        runs = min(self.jobs, len(self.standing()))
        idle = self.jobs - runs
        group = JobGroup(
            key="0", schedd=SCHEDD, owner="user0", submitter="user0@projects.test",
            ad=crowd.job_ad(0, "user0", JOB, crowd.WISHES[0]), request=JOB, idle=idle,
            running=runs, oldest=time.time() - 1, first_id="1.0",
        )  # fmt: skip
        return ScheddView((group,) if idle else (), None, idle, runs)

    def slots(self, deadline: float) -> PoolSlots:
        now = time.time()
        found = tuple(self._slot(one, at < self.jobs, now) for at, one in enumerate(self.standing()))
        return PoolSlots(CollectorView(found, now - 1e6, now), self._ads)

    def _slot(self, one: Instance, busy: bool, now: float) -> Slot:
        whole = usable(self._offers[one.cloud].resources)
        children = (Child("Claimed", "Busy", whole, "user0@projects.test"),) if busy else ()
        return Slot(
            name=f"slot1@{one.id}", instance_id=one.id, cloud=one.cloud, kind=self._kinds[one.cloud],
            total=whole, free=whole - whole if busy else whole, state="Unclaimed", activity="Idle",
            heard=now, started=one.launched_at, children=children, job_starts=1, launch_key=one.launch_key,
        )  # fmt: skip

    def drain(self, slots: Any, mode: DrainMode, reason: str, deadline: float) -> None:
        self._drained.update(slot.instance_id for slot in slots)


class Trial:
    """A controller with these projects. Whatever it launched is ended at the end, however that comes."""

    def __init__(self, projects: list[Project], folder: Path, stack: ExitStack) -> None:
        pool = f"t{uuid4().hex[:8]}"
        self.projects = projects
        flavor = os.environ.get("UPDRAFT_TEST_OS_FLAVOR") or projects[0].smallest()
        plain = {one.name: self._driver(one, pool, flavor) for one in projects}
        stack.callback(self._end_all, plain)
        sold = {
            name: next(o for o in driver.offers() if o.flavor == flavor) for name, driver in plain.items()
        }
        images = {name: driver.images()[0].id for name, driver in plain.items()}
        worker = WorkerClass(CLASS, GENERATION, tuple(plain), images=images, idle_limit=IDLE_LIMIT)
        watched = {name: Watched(driver) for name, driver in plain.items()}
        self.pool = JoiningPool(pool, {name: (watched[name], sold[name]) for name in plain}, worker)
        policy = Policy(pool, {CLASS: worker})
        clouds = {name: _paced(one) for name, one in watched.items()}
        self.ledger = ledger = stack.enter_context(Ledger(folder / "ledger.sqlite"))
        parts = Parts(policy, self.pool, clouds, _user_data)
        actor = Actor(
            policy=policy, pool=self.pool, clouds=clouds, user_data=_user_data, ledger=ledger,
            clock=time.time,
        )  # fmt: skip
        judge = stack.enter_context(Judge())
        self.daemon = Daemon(
            parts=parts, ledger=ledger, observer=wiring.make_observer(parts, ledger),
            preparer=wiring.make_preparer(ledger, judge), actor=actor, plan=plan, clock=time.time,
            switch=Switch(),
        )  # fmt: skip
        self.pause = policy.timings.cycle

    @staticmethod
    def _driver(project: Project, pool: str, flavor: str) -> Any:
        settings = {"os_cloud": project.name, "flavors": [flavor], **project.settings}
        return made("openstack", project.name, pool, settings)

    def turn_until(self, condition: Callable[[], bool], seconds: float) -> float:
        """Cycles at the daemon's own pace until the condition holds; how long that took."""
        begun = time.monotonic()
        while not condition():
            if time.monotonic() - begun > seconds:
                raise TimeoutError(f"not within {seconds:.0f} s; {len(self.pool.standing())} have joined")
            self.daemon.cycle()
            if not condition():
                time.sleep(self.pause)
        return time.monotonic() - begun

    def turn_for(self, seconds: float) -> None:
        """Cycles for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.daemon.cycle()
            time.sleep(self.pause)

    def all_gone(self) -> bool:
        """Whether the ledger knows of no machine that has not ended."""
        return all(one.ended_at is not None for one in self.ledger.view(time.time()).machines)

    @staticmethod
    def _end_all(drivers: Mapping[str, Any]) -> None:
        until = time.monotonic() + 300
        while time.monotonic() < until:
            left = {name: driver.machines() for name, driver in drivers.items()}
            if not any(left.values()):
                return
            for name, machines in left.items():
                drivers[name].terminate([one.id for one in machines if one.state is not CloudState.STOPPING])
            time.sleep(1.0)


def up_and_down(trial: Trial, jobs: int, seconds: float) -> dict[str, Any]:
    """From the moment when so many jobs wait until all that may be had runs, a while more, and all gone.

    CPU is this process's: of the controller, the SDK and what the pool is made of. `seconds` is the
    patience with each way.
    """
    most = sum(one.machines for one in trial.projects)
    with noted() as calls:
        begun, cpu = time.monotonic(), time.process_time()
        trial.pool.jobs = jobs
        up = trial.turn_until(lambda: len(trial.pool.standing()) == most, seconds)
        up_cpu = time.process_time() - cpu
        at_top = {one.name: one.in_use() - one.used for one in trial.projects}
        trial.turn_for(10.0)
        trial.pool.jobs = 0
        down = trial.turn_until(trial.all_gone, seconds)
        wall, used = time.monotonic() - begun, time.process_time() - cpu
    failed = [call for call in calls if call.status == 0 or call.status >= 400]
    changes = Counter(f"{call.method} {call.path}" for call in failed if call.method != "GET")
    creates = [call for call in calls if call.method == "POST" and call.path.endswith("/servers")]
    launches = trial.ledger.view(time.time()).launches
    return {
        "machines": at_top,
        "create_calls": len(creates),
        "create_s": [round(call.ended - call.begun, 2) for call in creates],
        "asked_for": [(one.cloud, one.count, str(one.state)) for one in launches],
        "at_top": sum(at_top.values()),
        "failed_calls": Counter(f"{_kind(call)} {call.status}" for call in failed),
        "repeated_failures": changes.total() - len(changes),
        "all_calls": Counter(_kind(call) for call in calls),
        "up_s": round(up, 1),
        "up_cpu_s": round(up_cpu, 2),
        "down_s": round(down, 1),
        "wall_s": round(wall, 1),
        "cpu_s": round(used, 2),
        "cpu_percent": round(100 * used / wall, 2),
    }


def _kind(call: Call) -> str:
    """The call without the ids in its path."""
    words = [word for word in call.path.split("/") if not (len(word) >= 32 or word.startswith("v"))]
    return f"{call.method} /{'/'.join(words).strip('/')}"


def _user_data(launch: Launch, token: str) -> bytes:
    """As large as a worker's."""
    return f"#cloud-config\n# {launch.key} {token}\n".encode().ljust(8000, b"#")
