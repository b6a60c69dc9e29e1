"""What jobs say of their groups and users, on real schedds: how it is read, and how it is refused."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.rigs.pools.livepool import LivePool, live_pool, wait_for
from tests.rigs.snapshots import policy, snapshot, worker
from updraft.bootstrap.head.transforms import GROUPS_FILE, groups_config, guarded
from updraft.condor.access import PoolAccess
from updraft.condor.pool import HTCondorPool
from updraft.condor.support.probe import PoolProbe
from updraft.core.model import JobGroup
from updraft.core.plan import plan
from updraft.core.settings import Limits

pytestmark = pytest.mark.integration

HELD = "executable = /bin/sleep\narguments = 600\nhold = true\n"
IDLE = "executable = /bin/sleep\narguments = 600\nrequirements = false\n"
MAP = """CLASSAD_USER_MAPDATA_AssignAccountingGroup @=end
* alice physics,urgent
* bob chem
@end
"""
LIES = (
    "accounting_group = spare/default",
    "accounting_group = physics.sub",
    "accounting_group = chem",
    "accounting_group_user = bob",
    "accounting_group = physics\naccounting_group_user = bob",
    '+AccountingGroup = "spare/default"',
    '+AccountingGroup = "bob"',
    '+AccountingGroup = ".alice"',
    "+AccountingGroup = 7",
    "+AccountingGroup = error",
    'accounting_group = physics\n+AccountingGroup = strcat("ch", "em.bob")',
    "max_materialize = 2\naccounting_group = chem",
)
TRUE_ONES = {
    "": "undefined",
    "accounting_group = physics": "physics.alice",
    "accounting_group_user = alice": "alice",
    '+User = "bob@pool.test"': "undefined",
    "max_materialize = 2\naccounting_group = urgent": "urgent.alice",
    # What says another thing later is what it was when the job came.
    '+AccountingGroup = ifThenElse(time() < 1, "chem.bob", "physics.alice")': "physics.alice",
    '+AccountingGroup = ifThenElse(time() < 1, "chem.bob", undefined)': "alice",
}


@pytest.fixture(scope="module", params=["", pytest.param("trixie", marks=pytest.mark.extended)])
def live(request: pytest.FixtureRequest) -> Iterator[LivePool]:
    with live_pool(suite=request.param) as pool, pool.network():
        yield pool


@pytest.fixture(scope="module")
def access(live: LivePool) -> PoolAccess:
    return live.access()


def groups(access: PoolAccess, live: LivePool) -> tuple[JobGroup, ...]:
    with HTCondorPool(access) as pool:
        (name,) = wait_for("the schedd", lambda: pool.schedds(20), 30)
        return pool.demand(name, running=False, deadline=20).groups


def submitted(live: LivePool, text: str) -> str:
    return live.nodes["head"].run(
        "condor_submit", "-terse", text=f"{text}\nqueue 1\n", user="alice", check=False
    )


def test_jobs_go_by_their_user_and_a_schedd_that_is_told_refuses_others_groups(
    live: LivePool, access: PoolAccess
) -> None:
    head = live.nodes["head"]
    for number, says in enumerate(("", *LIES[:6])):
        assert submitted(live, f"{IDLE}{says}\npriority = {number}").strip(), says
    found = groups(access, live)
    assert {(one.user, one.owner) for one in found} == {("alice@pool.test", "alice")}
    assert {"spare/default.alice", "bob", "physics.bob"} <= {one.submitter for one in found}
    capped = policy(worker(), limits=Limits(cores_per_user=3))
    made = plan(snapshot(groups=found), capped)
    assert sum(one.new for one in made.groups) <= 3

    with closing(PoolProbe(access)) as probe:
        (before,) = probe.schedds(30).values()
    assert not isinstance(before, str)
    assert before.requirements is not None
    assert not guarded(before.requirements, before.immutable or ())

    path = f"/etc/condor/config.d/{GROUPS_FILE}"
    head.run("sh", "-c", f"cat > {path}; condor_reconfig -schedd", text=groups_config() + MAP)
    wait_for("the schedd has read it", lambda: "may not" in submitted(live, f"{HELD}{LIES[0]}"), 30)
    said = submitted(live, f"{HELD}accounting_group = chem")
    assert "alice may not submit as chem.alice" in said
    assert "the groups of alice are: physics,urgent" in said
    for says in LIES:
        assert "ERROR" in submitted(live, f"{HELD}{says}"), says
    for says, name in TRUE_ONES.items():
        job = submitted(live, f"{HELD}{says}").split(".")[0].strip()
        assert job.isdigit(), says
        told = wait_for(
            "the job", lambda job=job: head.run("condor_q", job, "-af", "AccountingGroup").split(), 30
        )
        assert set(told) == {name}, says
        assert head.run("condor_q", job, "-af", "User").split()[0] == "alice@pool.test"
    for name in ("AccountingGroup", "AcctGroup", "AcctGroupUser", "User", "Owner"):
        edited = head.run("condor_qedit", job, name, '"bob"', user="alice", check=False)
        assert "immutable" in edited, name
    with closing(PoolProbe(access)) as probe:
        (after,) = probe.schedds(30).values()
    assert not isinstance(after, str)
    assert guarded(after.requirements or (), after.immutable or ())


def test_a_cluster_that_makes_its_jobs_late_makes_none_of_anothers_group(live: LivePool) -> None:
    head = live.nodes["head"]
    text = f"{HELD}max_materialize = 3\naccounting_group = $(g)\nqueue g in (physics chem urgent)\n"
    said = head.run("condor_submit", "-terse", text=text, user="alice", check=False)
    job = said.split(".")[0].strip()
    log = f"grep -c '{job}.1.*UpdraftGroups' /var/log/condor/SchedLog || true"
    assert job.isdigit(), said
    wait_for("the schedd has tried the second", lambda: int(head.run("sh", "-c", log)) > 0, 60)
    assert "chem" not in head.run("condor_q", "-allusers", job, "-af", "AccountingGroup")
