"""The eleven things that must never happen, as properties of any plan for any snapshot."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import DOWN, NOW, pick, policies, snapshots
from updraft.core.limits.pace import joins_left
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.cooldowns import cooldowns, image_key, outstanding
from updraft.core.model import (
    BudgetPeriod,
    BudgetScope,
    Drain,
    DrainMode,
    Forget,
    Known,
    Launch,
    Machine,
    Phase,
    Plan,
    RequeueJobs,
    Snapshot,
    Source,
    Spent,
    SpentRow,
    Terminate,
    Undrain,
    Unknown,
)
from updraft.core.plan import plan
from updraft.core.settings import DAY, Policy, SpendingLimit

SCALING_IN = ("idle-limit",)


def _ends(made: Plan) -> set[tuple[str, str]]:
    return {(a.cloud, m) for a in made.actions if isinstance(a, Terminate) for m in a.machines}


def _census(snapshot: Snapshot, policy: Policy) -> dict[tuple[str, str], Machine]:
    return {(m.cloud, m.id): m for m in MachineCache().look(snapshot, policy).machines}


def _heard_of(machine: Machine, policy: Policy) -> bool:
    """Whether the pool has lately heard of it."""
    return any(NOW - slot.heard <= policy.timings.stale_ad for slot in machine.slots)


def _silent_clouds(snapshot: Snapshot) -> set[str]:
    return {name for name, view in snapshot.clouds.items() if not isinstance(view.machines, Known)}


@given(snapshots(), policies())
def test_1_a_busy_machine_is_ended_only_by_a_deadline_or_by_its_cloud(
    snapshot: Snapshot, policy: Policy
) -> None:
    """Rule 1: what runs jobs is not terminated by scaling in, and scaling in drains only what is empty."""
    made, seen = plan(snapshot, policy), _census(snapshot, policy)
    for key in _ends(made):
        machine = seen[key]
        if not machine.busy or not _heard_of(machine, policy):
            continue
        drain = machine.record.drain
        assert drain is not None, "by a deadline, then, whatever its cloud says of it"
        assert drain.accepted_at is not None
        assert machine.phase is Phase.DRAINING
    for action in made.actions:
        if isinstance(action, Drain) and action.mode is DrainMode.EMPTY:
            assert not seen[(action.cloud, action.machine)].busy


@given(snapshots(), policies())
def test_1_an_open_machine_is_never_terminated_without_a_drain(snapshot: Snapshot, policy: Policy) -> None:
    """Rule 1: a machine that the pool can still use goes through a drain first."""
    made, seen = plan(snapshot, policy), _census(snapshot, policy)
    for key in _ends(made):
        machine = seen[key]
        open_slots = [s for s in machine.slots if not s.draining]
        assert len(open_slots) < len(machine.slots) or not _heard_of(machine, policy)


@given(snapshots(), policies())
def test_2_unknown_is_not_zero(snapshot: Snapshot, policy: Policy) -> None:
    """Rule 2: nothing leaves on the word of a source that did not answer."""
    made, seen = plan(snapshot, policy), _census(snapshot, policy)
    silent = _silent_clouds(snapshot)
    for action in made.actions:
        if isinstance(action, Drain | Terminate):
            assert action.cloud not in silent
        if isinstance(action, Launch):
            assert action.offer.cloud not in silent
    if not isinstance(snapshot.collector, Known):
        assert not [a for a in made.actions if isinstance(a, Drain | Launch | Forget)]
        # What it has closed itself, before it went silent, may be ended.
        for key in _ends(made):
            drain = seen[key].record.drain
            assert drain is not None
            assert drain.accepted_at is not None
    silent_schedd = any(
        not isinstance(s, Known) and NOW - (s.last.at if s.last else s.since) < policy.timings.schedd_patience
        for s in snapshot.schedds.values()
    )
    if silent_schedd:
        leaving = [a for a in made.actions if isinstance(a, Drain) and a.reason.code in SCALING_IN]
        # One that was decided on before, and is under way, is asked for again.
        assert all(any(slot.draining for slot in seen[a.cloud, a.machine].slots) for a in leaving)


@given(snapshots(), policies())
def test_2_a_machine_with_a_live_lease_is_not_taken_for_vanished(snapshot: Snapshot, policy: Policy) -> None:
    """Rule 2: a silent machine goes only when every schedd has said that no job has a lease there.

    One that was asked in vain for longer than a lease lasts counts for that.
    """
    made, seen = plan(snapshot, policy), _census(snapshot, policy)
    leased: set[str] = set()
    heard = True
    for source in snapshot.schedds.values():
        if isinstance(source, Known) and source.value.running is not None:
            leased.update(j.slot.split("@")[1] for j in source.value.running if j.lease_until > NOW)
        else:
            heard = heard and not isinstance(source, Known)
    silent = any(isinstance(source, Unknown) for source in snapshot.schedds.values())
    for key in _ends(made):
        if seen[key].phase is Phase.LOST:
            since = seen[key].record.silent_since
            assert heard, "one that answers is asked first"
            assert not silent or (since is not None and NOW - since >= policy.timings.schedd_patience)
            assert key[1] not in leased


@given(snapshots(), policies())
def test_4_limits_hold_with_all_that_was_asked_for(snapshot: Snapshot, policy: Policy) -> None:
    """Rules 3 and 4: existing, promised and new machines together stay within every limit."""
    made = plan(snapshot, policy)
    seen = MachineCache().look(snapshot, policy).machines
    over = set(made.settled)
    waiting = [o for o in outstanding(snapshot.ledger, seen) if o.launch.key not in over]
    living = [m for m in seen if m.phase is not Phase.GONE]
    new = [(a.offer, a.count) for a in made.actions if isinstance(a, Launch)]
    if not new:
        return
    count = len(living) + sum(o.count for o in waiting) + sum(n for _, n in new)
    cores = (
        sum(m.record.resources.cpus for m in living)
        + sum(o.launch.resources.cpus * o.count for o in waiting)
        + sum(o.resources.cpus * n for o, n in new)
    )
    limits, mine = policy.limits, policy.classes["default"]
    assert limits.machines is None or count <= limits.machines
    assert limits.cores is None or cores <= limits.cores
    assert mine.max_machines is None or count <= mine.max_machines
    if limits.cost_per_hour is not None:
        prices = (
            [m.record.price for m in living] + [o.launch.price for o in waiting] + [o.price for o, _ in new]
        )
        assert None not in prices
        cost = (
            sum(m.record.price or 0 for m in living)
            + sum((o.launch.price or 0) * o.count for o in waiting)
            + sum((o.price or 0) * n for o, n in new)
        )
        assert cost <= limits.cost_per_hour + 1e-6
    first = policy.cloud_limits["c1"].machines
    if first is not None and any(o.cloud == "c1" for o, _ in new):
        there = len([m for m in living if m.cloud == "c1"]) + sum(
            o.count for o in waiting if o.launch.cloud == "c1"
        )
        assert there + sum(n for o, n in new if o.cloud == "c1") <= first


@st.composite
def money(draw: st.DrawFn) -> tuple[tuple[SpendingLimit, ...], Source[Spent] | None]:
    """Budgets of everybody, and what the records say, if they do: a day's part in the afternoon of a day."""
    whose = [
        (BudgetScope.POOL, ""), (BudgetScope.CLOUD, "c1"), (BudgetScope.CLASS, "default"),
        (BudgetScope.USER, "alice"), (BudgetScope.GROUP, "physics"),
    ]  # fmt: skip
    limits = tuple(
        SpendingLimit(*pick(draw, whose), pick(draw, list(BudgetPeriod)), pick(draw, [0.0, 0.5, 2.0, 20.0]))
        for _ in range(draw(st.integers(1, 3)))
    )
    amounts = [0.0, 0.4, 1.9, 19.9]
    rows = tuple(
        SpentRow(
            draw(st.booleans()), pick(draw, amounts), pick(draw, [0.0, 0.0, 0.0, 60.0]), cloud, "default"
        )
        for cloud in ("c1", "c2")
    )
    people = tuple(
        SpentRow(True, pick(draw, amounts), user=user, group=pick(draw, ["", "physics"]))
        for user in ("alice@pool", "bob@pool")
    )
    at = NOW - pick(draw, [0.0, 20.0, 1000.0])
    known = Known(Spent(at, int(NOW // DAY), rows, people), at)
    return limits, pick(draw, [known, known, known, Unknown(DOWN, NOW - 60), None])


@given(snapshots(), policies(), money())
def test_4_no_plan_buys_where_a_budget_is_spent_or_would_be_within_the_hour(
    snapshot: Snapshot, policy: Policy, told: tuple[tuple[SpendingLimit, ...], Source[Spent] | None]
) -> None:
    """All that exists, was promised and is bought can be paid for an hour; unknown is not zero."""
    limits, source = told
    snapshot, policy = replace(snapshot, spent=source), replace(policy, spending=limits, groups_trusted=True)
    made = plan(snapshot, policy)
    new = [(a.offer, a.count) for a in made.actions if isinstance(a, Launch)]
    seen = MachineCache().look(snapshot, policy).machines
    coming = [o for o in outstanding(snapshot.ledger, seen) if o.launch.key not in set(made.settled)]
    living = [m.record for m in seen if m.phase is not Phase.GONE]
    for limit in limits:
        if limit.scope in (BudgetScope.USER, BudgetScope.GROUP):
            continue
        only = limit.name if limit.scope is BudgetScope.CLOUD else None
        bought = [(offer, count) for offer, count in new if only in (None, offer.cloud)]
        if not bought:
            continue
        assert isinstance(source, Known)
        rows = [row for row in source.value.machines if only in (None, row.cloud)]
        rows = [row for row in rows if row.today or limit.period is BudgetPeriod.MONTH]
        running = [(r.price, 1) for r in living if only in (None, r.cloud)]
        running += [(o.launch.price, o.count) for o in coming if only in (None, o.launch.cloud)]
        running += [(offer.price, count) for offer, count in bought]
        assert not any(row.unpriced for row in rows), "of a flavor that nobody sells"
        assert source.value.at > NOW - 300
        assert all(price is not None for price, _ in running)
        burn = sum((price or 0.0) * count for price, count in running)
        assert sum(row.cost for row in rows) + burn <= limit.most * (1 + 1e-9) + 1e-6


@given(snapshots(), policies(), money())
def test_4_nothing_is_bought_for_a_user_whose_budget_is_spent(
    snapshot: Snapshot, policy: Policy, told: tuple[tuple[SpendingLimit, ...], Source[Spent] | None]
) -> None:
    """All jobs of these snapshots are alice's."""
    limits, source = told
    mine = [one for one in limits if one.scope is BudgetScope.USER]
    made = plan(replace(snapshot, spent=source), replace(policy, spending=limits))
    cost = 0.0
    if isinstance(source, Known):
        cost = sum(row.cost for row in source.value.people if row.user == "alice@pool")
    if any(not isinstance(source, Known) or cost >= one.most for one in mine):
        assert not any(group.new for group in made.groups)


@given(snapshots(), policies())
def test_7_nothing_is_touched_that_is_not_ours(snapshot: Snapshot, policy: Policy) -> None:
    """Rule 7: every machine that is acted on is in the ledger or carries the pool's tag."""
    ours = {(r.cloud, r.id) for r in snapshot.ledger.machines}
    for name, view in snapshot.clouds.items():
        if isinstance(view.machines, Known):
            ours |= {(name, found.id) for found in view.machines.value}
    made = plan(snapshot, policy)
    assert _ends(made) <= ours
    for action in made.actions:
        if isinstance(action, Drain | Undrain | Forget):
            assert (action.cloud, action.machine) in ours


@given(snapshots(), policies())
def test_8_what_failed_rests_and_what_is_unproven_is_tried_first(snapshot: Snapshot, policy: Policy) -> None:
    """Rule 8: nothing is launched where something rests, one as a probe, a few of an unproven image."""
    made = plan(snapshot, policy)
    # What the snapshot itself shows counts: who has joined by now proves an image, and ends a rest.
    records = {(r.cloud, r.id): r for r in (*snapshot.ledger.machines, *made.records)}
    ledger = replace(snapshot.ledger, machines=tuple(records.values()))
    rests = {(c.scope, c.key): c for c in cooldowns(ledger, NOW, policy.timings)}
    joined = {
        image_key(r.worker_class, r.image, r.cloud) for r in records.values() if r.joined_at is not None
    }
    per_image: dict[str, int] = {}
    for action in made.actions:
        if not isinstance(action, Launch):
            continue
        offer = action.offer
        image = image_key(offer.worker_class, offer.image, offer.cloud)
        per_image[image] = per_image.get(image, 0) + action.count
        for name in (
            ("offer", f"{offer.cloud}/{offer.zone}/{offer.flavor}/{offer.market}"),
            ("cloud", offer.cloud),
            ("image", image),
        ):
            rest = rests.get(name)
            assert rest is None or rest.until <= NOW
            assert rest is None or not rest.probe or action.count <= 1
    for image, count in per_image.items():
        assert image in joined or count <= policy.timings.trial


@given(snapshots(), policies())
def test_11_the_same_snapshot_gives_the_same_plan(snapshot: Snapshot, policy: Policy) -> None:
    """Rule 11, first half; the order in which sources are listed doesn't matter either."""
    backwards = replace(snapshot, clouds=dict(reversed(snapshot.clouds.items())))
    assert plan(snapshot, policy) == plan(snapshot, policy)
    assert set(plan(backwards, policy).actions) == set(plan(snapshot, policy).actions)


@given(snapshots(), policies())
def test_no_more_are_asked_for_than_the_collectors_take(snapshot: Snapshot, policy: Policy) -> None:
    """Whatever they are for: jobs, a minimum, a replacement."""
    most = joins_left(snapshot.pace, snapshot.ledger, snapshot.now)
    if most is not None:
        made = plan(snapshot, policy)
        assert sum(action.count for action in made.actions if isinstance(action, Launch)) <= most
        assert "join-pace" in {warning.code for warning in made.warnings}


@given(snapshots(), policies())
def test_each_machine_has_at_most_one_fate_and_each_action_a_reason(
    snapshot: Snapshot, policy: Policy
) -> None:
    """No machine is both drained and terminated; every action and every machine has a reason with words."""
    made = plan(snapshot, policy)
    touched: list[tuple[str, str]] = []
    for action in made.actions:
        assert action.reason.code
        assert action.reason.text
        if isinstance(action, Drain | Undrain):
            touched.append((action.cloud, action.machine))
        if isinstance(action, Terminate):
            touched.extend((action.cloud, m) for m in action.machines)
    assert len(touched) == len(set(touched))
    assert all(o.reason.code and o.reason.text for o in made.machines)


@given(snapshots(), policies())
def test_jobs_are_requeued_only_from_machines_that_are_gone(snapshot: Snapshot, policy: Policy) -> None:
    """Only the cloud's word gives jobs back to the queue, or that they are on hold for us already."""
    made, seen = plan(snapshot, policy), {m.id: m for m in MachineCache().look(snapshot, policy).machines}
    for action in made.actions:
        if isinstance(action, RequeueJobs) and action.machine:
            assert seen[action.machine].phase is Phase.GONE
        elif isinstance(action, RequeueJobs):
            view = snapshot.schedds[action.schedd]
            assert isinstance(view, Known)
            assert action.jobs == view.value.held


@given(snapshots(), policies())
def test_what_is_on_hold_for_us_is_given_back_once_at_each_look(snapshot: Snapshot, policy: Policy) -> None:
    """At every schedd that answers, and at no other."""
    told = [a.schedd for a in plan(snapshot, policy).actions if isinstance(a, RequeueJobs)]
    for schedd, view in snapshot.schedds.items():
        if isinstance(view, Known) and view.value.held:
            assert schedd in told
        if isinstance(view, Unknown):
            assert schedd not in told


@given(snapshots(), policies())
def test_closing_launches_nothing(snapshot: Snapshot, policy: Policy) -> None:
    """`destroy` never makes a machine, whatever the minimum says."""
    made = plan(snapshot, replace(policy, closing=True))
    assert not [a for a in made.actions if isinstance(a, Launch)]
