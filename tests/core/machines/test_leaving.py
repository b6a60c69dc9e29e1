"""What becomes of each machine, whatever the queue says: the rules of each phase, and what holds for all."""

from dataclasses import replace

import pytest
from hypothesis import given

from tests.rigs.snapshots import (
    DOWN,
    GENERATION,
    NOW,
    instance,
    policies,
    policy,
    record,
    slot,
    snapshot,
    snapshots,
    worker,
)
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.dispositions import DecisionView, Disposition
from updraft.core.machines.handover import ABSENCE
from updraft.core.machines.leaving import RULES, closed_for_good, disposition, left_on_hold
from updraft.core.machines.lifecycle import SPOT_NOTICE
from updraft.core.model import (
    CloudState,
    CloudView,
    Disown,
    Drain,
    DrainMode,
    DrainRecord,
    Forget,
    Known,
    Machine,
    Phase,
    Reason,
    RequeueJobs,
    RunningJob,
    ScheddView,
    Snapshot,
    Terminate,
    Undrain,
    Unknown,
)
from updraft.core.settings import CloudRule, Policy

BY_HAND = Reason("operator", "as a test says")
GONE_BY_HAND = Reason("disown", "as a test says")
LEAVING = Reason("cloud-drained", "as a test says")
STOPPED = instance("i-1", CloudState.STOPPED)
HELD = Known(ScheddView((), (), held=("9.0",)), NOW)
HOME = ("c1", "i-1")


def job(lease: float = 500.0, **changes: object) -> RunningJob:
    made = RunningJob("schedd", "7.0", "slot1_1@i-1@host", "alice", NOW + lease)
    return replace(made, **changes)  # type: ignore[arg-type]


def closing(mode: DrainMode, code: str = "idle-limit", **changes: object) -> DrainRecord:
    """A drain that was asked for and accepted a second ago."""
    made = DrainRecord(mode, NOW - 1, Reason(code, "as a test says"), accepted_at=NOW - 1)
    return replace(made, **changes)  # type: ignore[arg-type]


EMPTY, BUSY = closing(DrainMode.EMPTY), closing(DrainMode.BUSY, "operator")


def became(
    phase: Phase,
    *,
    busy: bool | None = False,
    shown: Snapshot | None = None,
    rules: Policy | None = None,
    surplus: frozenset[tuple[str, str]] = frozenset(),
    state: CloudState = CloudState.RUNNING,
    patience: float | None = None,
    **changes: object,
) -> Disposition | None:
    """The fate of one machine in this phase; `busy` None: it has no slot. `changes` are its record's."""
    kept = record("i-1", **({"joined_at": NOW - 3500, "last_claimed_at": NOW - 9} | changes))
    slots = () if busy is None else (slot("i-1", busy, draining=phase is Phase.DRAINING),)
    if patience is not None:
        children = tuple(replace(child, retirement=patience) for child in slots[0].children)
        slots = (replace(slots[0], children=children),)
    machine = Machine("i-1", "c1", phase, "default", "small", GENERATION, kept, instance("i-1", state), slots)
    return disposition(machine, DecisionView(shown or snapshot(), rules or policy(), surplus))


def told(found: Disposition | None) -> tuple[str, ...]:
    """The reason's code and the names of what is done."""
    assert found is not None
    return (found.reason.code, *(type(action).__name__.lower() for action in found.actions))


def silent(**changes: object) -> Snapshot:
    """The same pool, with a cloud that doesn't answer."""
    down = Unknown(DOWN, NOW - 60)
    return replace(snapshot(**changes), clouds={"c1": CloudView(down, down, down)})  # type: ignore[arg-type]


UNHEARD = snapshot(running=None)  # the schedd has said what waits there, and not what runs


def test_each_phase_has_rules() -> None:
    assert set(RULES) == set(Phase)


def test_one_that_has_joined_and_has_no_cause_to_go_stays() -> None:
    assert became(Phase.JOINED) is None
    assert became(Phase.JOINED, busy=True) is None


# ------------------------------------------------------------------------------- causes to go


@pytest.mark.parametrize(
    ("changes", "rules", "code"),
    [
        ({"wanted_drain": DrainRecord(DrainMode.BUSY, NOW, BY_HAND)}, policy(), "operator"),
        ({}, policy(closing=True), "destroy"),
        ({}, replace(policy(), classes={}), "drifted"),
        ({}, policy(worker(lifetime=3600.0)), "lifetime"),
        ({}, policy(worker(generation="g2")), "drifted"),
        ({}, policy(clouds={"c1": CloudRule(leaving=LEAVING)}), "cloud-drained"),
    ],
)
def test_a_cause_to_go_drains_it_empty_or_busy(changes: dict[str, object], rules: Policy, code: str) -> None:
    for busy, mode in ((False, DrainMode.EMPTY), (True, DrainMode.BUSY)):
        found = became(Phase.JOINED, busy=busy, rules=rules, **changes)  # type: ignore[arg-type]
        assert told(found) == (code, "drain")
        assert found is not None
        (drain,) = found.actions
        assert isinstance(drain, Drain)
        assert drain.mode is mode
        without = became(Phase.JOINED, busy=busy, rules=rules, shown=silent(), **changes)  # type: ignore[arg-type]
        assert without is None, "a cloud that is silent can't be asked to end it later"


def test_one_over_a_lowered_limit_goes() -> None:
    assert told(became(Phase.JOINED, surplus=frozenset({HOME}))) == ("over-limit", "drain")


def test_at_the_end_of_its_lifetime_running_jobs_have_until_the_deadline() -> None:
    old = worker(lifetime=3600.0, drain_deadline=100.0)
    found = became(Phase.JOINED, busy=True, rules=policy(old))
    assert found is not None
    assert found.deadline == NOW - 3600 + 3600 + 100
    idle = became(Phase.JOINED, rules=policy(old))
    assert idle is not None
    assert idle.deadline is None


def test_a_job_that_a_drain_would_throw_off_is_waited_for_until_the_deadline() -> None:
    short = policy(worker(lifetime=3600.0, drain_deadline=100.0))
    assert told(became(Phase.JOINED, busy=True, patience=99.0, rules=short)) == ("impatient-job",)
    assert told(became(Phase.JOINED, busy=True, patience=100.0, rules=short)) == ("lifetime", "drain")
    late = replace(short, classes={"default": worker(lifetime=3000.0, drain_deadline=100.0)})
    assert told(became(Phase.JOINED, busy=True, patience=0.0, rules=late)) == ("lifetime", "drain")


# ------------------------------------------------------------------------------- drains


@pytest.mark.parametrize(
    ("drain", "busy", "expected"),
    [
        (EMPTY, False, ("idle-limit",)),
        (replace(EMPTY, accepted_at=NOW - 61), False, ("idle-limit", "terminate")),
        (BUSY, False, ("operator", "terminate")),
        (closing(DrainMode.BUSY, "lifetime"), True, ("lifetime",)),
        (closing(DrainMode.BUSY, "lifetime", deadline=NOW + 1), True, ("lifetime",)),
        (closing(DrainMode.BUSY, "lifetime", deadline=NOW), True, ("deadline", "terminate")),
        (BUSY, True, ("taken-back", "undrain")),
        (closing(DrainMode.BUSY, "drifted"), True, ("taken-back", "undrain")),
        (closing(DrainMode.BUSY, "over-limit"), True, ("taken-back", "undrain")),
        (closing(DrainMode.BUSY, "cloud-drained"), True, ("taken-back", "undrain")),
        (None, True, ("foreign-drain",)),
    ],
)
def test_how_a_drain_goes_on(drain: DrainRecord | None, busy: bool, expected: tuple[str, ...]) -> None:
    assert told(became(Phase.DRAINING, busy=busy, drain=drain)) == expected
    assert len(told(became(Phase.DRAINING, busy=busy, drain=drain, shown=silent()))) == 1, "nothing is done"


@pytest.mark.parametrize(
    ("code", "rules", "surplus", "wanted"),
    [
        ("operator", policy(), frozenset(), DrainRecord(DrainMode.BUSY, NOW, BY_HAND)),
        ("operator", policy(closing=True), frozenset(), None),
        ("drifted", policy(worker(generation="g2")), frozenset(), None),
        ("drifted", replace(policy(), classes={}), frozenset(), None),
        ("over-limit", policy(), frozenset({HOME}), None),
        ("cloud-drained", policy(clouds={"c1": CloudRule(leaving=LEAVING)}), frozenset(), None),
    ],
)
def test_while_its_cause_is_there_a_drain_is_not_taken_back(
    code: str, rules: Policy, surplus: frozenset[tuple[str, str]], wanted: DrainRecord | None
) -> None:
    drain = closing(DrainMode.BUSY, code)
    found = became(Phase.DRAINING, busy=True, drain=drain, rules=rules, surplus=surplus, wanted_drain=wanted)
    assert told(found) == (code,)


def test_an_operator_may_bring_the_deadline_forward_and_not_put_it_off() -> None:
    drain = closing(DrainMode.BUSY, "lifetime", deadline=NOW + 10)
    for sooner, expected in ((NOW - 1, "operator"), (NOW + 99, "lifetime")):
        wanted = DrainRecord(DrainMode.BUSY, NOW, BY_HAND, deadline=sooner)
        found = became(Phase.DRAINING, busy=True, drain=drain, wanted_drain=wanted)
        assert told(found)[0] == expected
    wanted = DrainRecord(DrainMode.BUSY, NOW, BY_HAND, deadline=NOW + 5)
    endless = became(
        Phase.DRAINING, busy=True, drain=closing(DrainMode.BUSY, "lifetime"), wanted_drain=wanted
    )
    assert endless is not None
    assert endless.deadline == NOW + 5


@pytest.mark.parametrize("code", ["operator", "drifted"])
def test_the_end_of_its_lifetime_holds_for_one_that_is_drained_for_another_cause(code: str) -> None:
    for left, expected in ((1.0, code), (-1.0, "deadline")):
        short = policy(worker(lifetime=3000.0, drain_deadline=600.0 + left, generation="g2"))
        wanted = DrainRecord(DrainMode.BUSY, NOW, BY_HAND)
        drain = closing(DrainMode.BUSY, code)
        found = became(Phase.DRAINING, busy=True, drain=drain, rules=short, wanted_drain=wanted)
        assert told(found)[0] == expected


@pytest.mark.parametrize(
    ("drain", "expected"),
    [
        (closing(DrainMode.EMPTY, accepted_at=None), ("reconsidered", "undrain")),
        (closing(DrainMode.BUSY, "lifetime", accepted_at=None), ("lifetime", "drain")),
        (EMPTY, ("idle-limit",)),
    ],
)
def test_a_drain_that_a_crash_cut_short_is_looked_at_anew(
    drain: DrainRecord, expected: tuple[str, ...]
) -> None:
    assert told(became(Phase.JOINED, busy=True, drain=drain)) == expected
    assert told(became(Phase.JOINED, busy=None, drain=drain))[1:] == (), "its slots are to be seen first"


# ------------------------------------------------------------------------------- let go by hand


@pytest.mark.parametrize(
    ("changes", "busy", "expected"),
    [
        ({}, True, ("disown", "disown")),
        ({"drain": BUSY}, True, ("disown", "undrain")),
        ({"drain": BUSY}, None, ("disown", "disown")),
    ],
)
def test_one_that_is_let_go_is_opened_again_and_then_disowned(
    changes: dict[str, object], busy: bool | None, expected: tuple[str, ...]
) -> None:
    found = became(Phase.DRAINING, busy=busy, let_go=GONE_BY_HAND, **changes)  # type: ignore[arg-type]
    assert told(found) == expected
    waits = became(Phase.DRAINING, busy=busy, let_go=GONE_BY_HAND, shown=silent(), **changes)  # type: ignore[arg-type]
    assert told(waits) == ("disown",)


def test_one_that_is_past_taking_back_is_not_let_go() -> None:
    assert closed_for_good(record("i-1", drain=EMPTY))
    assert not closed_for_good(record("i-1", drain=BUSY))
    assert not closed_for_good(record("i-1", drain=replace(EMPTY, accepted_at=None)))
    assert told(became(Phase.DRAINING, let_go=GONE_BY_HAND, drain=EMPTY)) == ("idle-limit",)
    ended = became(Phase.GONE, busy=None, let_go=GONE_BY_HAND, state=CloudState.TERMINATED)
    assert ended is not None
    assert ended.ended
    asked = became(Phase.LOST, busy=None, let_go=GONE_BY_HAND, terminate_asked_at=NOW - 1)
    assert not any(isinstance(action, Disown) for action in asked.actions if asked)  # type: ignore[union-attr]


# ------------------------------------------------------------------------------- broken, ending, gone


@pytest.mark.parametrize(
    ("phase", "state", "changes", "expected"),
    [
        (Phase.FAILED, CloudState.ERROR, {}, ("cloud-error", "terminate")),
        (Phase.FAILED, CloudState.ERROR, {"terminate_asked_at": NOW - 14}, ("cloud-error",)),
        (Phase.FAILED, CloudState.ERROR, {"terminate_asked_at": NOW - 15}, ("cloud-error", "terminate")),
        (Phase.ENDING, CloudState.STOPPING, {}, ("powered-off",)),
        (Phase.ENDING, CloudState.STOPPED, {}, ("powered-off", "terminate")),
        (Phase.ENDING, CloudState.RUNNING, {"drain": EMPTY}, ("idle-limit", "terminate")),
        (Phase.ENDING, CloudState.RUNNING, {"drain": EMPTY, "end": BY_HAND}, ("idle-limit", "terminate")),
        (Phase.ENDING, CloudState.STOPPED, {"drain": EMPTY, "end": BY_HAND}, ("operator", "terminate")),
    ],
)
def test_what_is_broken_or_on_its_way_out_is_ended(
    phase: Phase, state: CloudState, changes: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert told(became(phase, busy=None, state=state, **changes)) == expected  # type: ignore[arg-type]


def test_a_machine_that_is_gone_gives_its_jobs_back_and_is_over_when_there_are_none() -> None:
    there = snapshot(running=(job(), job(job_id="8.0", slot="slot1_1@i-2@host")))
    found = became(Phase.GONE, shown=there)
    assert told(found) == ("gone", "forget", "requeuejobs")
    assert found is not None
    forget, requeue = found.actions
    assert isinstance(forget, Forget)
    assert forget.slots == ("slot1@i-1@host",)
    assert isinstance(requeue, RequeueJobs)
    assert (requeue.schedd, requeue.jobs) == ("schedd", ("7.0",))
    assert (found.ended, found.warn) == (False, True)
    empty = became(Phase.GONE, busy=None)
    assert empty is not None
    assert (empty.actions, empty.ended, empty.warn) == ((), True, True)


def test_a_job_of_many_nodes_is_given_back_once_and_one_that_is_removed_not_at_all() -> None:
    nodes = (job(slot="slot1_1@i-1@host"), job(slot="slot1_2@i-1@host"))
    found = became(Phase.GONE, busy=None, shown=snapshot(running=(*nodes, job(job_id="8.0", leaving=True))))
    assert found is not None
    (requeue,) = found.actions
    assert isinstance(requeue, RequeueJobs)
    assert requeue.jobs == ("7.0",)
    over = became(Phase.GONE, busy=None, shown=snapshot(running=(job(leaving=True),)))
    assert over is not None
    assert (over.actions, over.ended) == ((), True)


@pytest.mark.parametrize("leaving", [False, True])
def test_one_that_left_the_pool_stays_while_any_job_has_a_lease_there(leaving: bool) -> None:
    found = became(
        Phase.LOST, busy=None, shown=snapshot(running=(job(leaving=leaving),)), silent_since=NOW - 999
    )
    assert told(found) == ("lost",)


def test_what_was_asked_to_end_is_no_surprise() -> None:
    found = became(Phase.GONE, busy=None, end=BY_HAND)
    assert found is not None
    assert (found.reason, found.ended, found.warn) == (BY_HAND, True, False)
    spot = became(Phase.GONE, busy=None, drain=closing(DrainMode.BUSY, SPOT_NOTICE))
    assert told(spot) == (SPOT_NOTICE,)


@pytest.mark.parametrize(("since", "over"), [(None, False), (NOW - 1799, False), (NOW - 1800, True)])
def test_where_a_schedd_has_not_said_what_runs_a_gone_machine_is_over_after_its_patience(
    since: float | None, over: bool
) -> None:
    silent = replace(snapshot(), schedds={"schedd": Unknown(DOWN, NOW - 2000)})
    found = became(Phase.GONE, busy=None, shown=silent, missing_since=since)
    assert found is not None
    assert found.ended is over
    found = became(Phase.GONE, busy=None, shown=UNHEARD, missing_since=since)
    assert found is not None
    assert not found.ended, "one that answers is asked first"


def test_one_that_never_joined_or_was_closed_empty_has_no_jobs_to_ask_for() -> None:
    for changes in ({"joined_at": None}, {"drain": EMPTY}):
        found = became(Phase.GONE, busy=None, shown=UNHEARD, **changes)  # type: ignore[arg-type]
        assert found is not None
        assert found.ended


@pytest.mark.parametrize(
    ("started", "given_back"),
    [(NOW - 500, True), (NOW - 201, True), (NOW - 200, True), (NOW - 119, False), (NOW - 120, True)],
)
def test_a_job_that_started_there_when_it_was_gone_has_two_minutes_to_fail_by_itself(
    started: float, given_back: bool
) -> None:
    shown = snapshot(running=(job(started=started),))
    found = became(Phase.GONE, busy=None, shown=shown, missing_since=NOW - 200)
    assert ("requeuejobs" in told(found)) is given_back
    assert found is not None
    assert not found.ended


# ------------------------------------------------------------------------------- lost, late


@pytest.mark.parametrize(
    ("shown", "changes", "expected"),
    [
        (snapshot(), {"silent_since": NOW - 59}, ("lost",)),
        (snapshot(), {"silent_since": NOW - 60}, ("vanished", "terminate")),
        (silent(), {"silent_since": NOW - 600}, ("lost",)),
        (UNHEARD, {"silent_since": NOW - 600}, ("lost",)),
        (snapshot(running=(job(),)), {"silent_since": NOW - 600}, ("lost",)),
        (snapshot(running=(job(-1.0),)), {"silent_since": NOW - 600}, ("vanished", "terminate")),
        (snapshot(), {"silent_since": NOW, "drain": EMPTY}, ("vanished", "terminate")),
        (snapshot(), {"silent_since": NOW, "drain": BUSY}, ("lost",)),
        (
            snapshot(),
            {"silent_since": NOW, "drain": closing(DrainMode.BUSY, SPOT_NOTICE)},
            (SPOT_NOTICE, "terminate"),
        ),
    ],
)
def test_what_left_the_pool_unasked_goes_when_no_job_has_a_lease_there(
    shown: Snapshot, changes: dict[str, object], expected: tuple[str, ...]
) -> None:
    found = became(Phase.LOST, busy=None, shown=shown, **changes)  # type: ignore[arg-type]
    assert told(found) == expected
    assert found is not None
    # What no schedd was asked yet, the next look finds out.
    assert found.warn is (found.reason.code == "lost" and shown is not UNHEARD)


YOUNG = Known(replace(snapshot().collector.value, started=NOW - 100), NOW)  # type: ignore[union-attr]
OLDER = Known(replace(snapshot().collector.value, started=NOW - 900), NOW)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("shown", "asked", "expected"),
    [
        (snapshot(), NOW - 1799, ("booting",)),
        (snapshot(), NOW - 1800, ("never-joined", "terminate")),
        (silent(), NOW - 1800, ("overdue",)),
        (snapshot(collector=YOUNG), NOW - 1800, ("overdue",)),
        (snapshot(collector=OLDER), NOW - 1800, ("never-joined", "terminate")),
        (snapshot(collector=OLDER, running=(job(),)), NOW - 1800, ("overdue",)),
        (snapshot(collector=Unknown(DOWN, NOW)), NOW - 9999, ("overdue",)),
        # While no controller acted it couldn't join.
        (snapshot(awake_since=NOW - 30), NOW - 1800, ("booting",)),
        (snapshot(taken_over_at=NOW - 30), NOW - 1800, ("booting",)),
        (snapshot(awake_since=NOW - 1800), NOW - 1900, ("never-joined", "terminate")),
        (snapshot(awake_since=NOW - 30), NOW - 1800 - ABSENCE, ("never-joined", "terminate")),
    ],
)
def test_one_that_does_not_join_goes_when_it_is_certain_to_run_nothing(
    shown: Snapshot, asked: float, expected: tuple[str, ...]
) -> None:
    for phase in (Phase.BOOTING, Phase.REQUESTED):
        found = became(
            phase, busy=None, shown=shown, joined_at=None, last_claimed_at=None, requested_at=asked
        )
        assert told(found) == expected


def test_one_that_boots_is_not_waited_for_where_all_goes_or_somebody_wants_it() -> None:
    young = {"busy": None, "joined_at": None, "last_claimed_at": None, "requested_at": NOW - 5}
    wanted = DrainRecord(DrainMode.BUSY, NOW, BY_HAND)
    assert told(became(Phase.BOOTING, rules=policy(closing=True), **young)) == ("destroy", "terminate")  # type: ignore[arg-type]
    assert told(became(Phase.BOOTING, wanted_drain=wanted, **young)) == ("operator", "terminate")  # type: ignore[arg-type]
    doubt = became(Phase.BOOTING, rules=policy(closing=True), shown=silent(), **young)  # type: ignore[arg-type]
    assert told(doubt) == ("booting",)


def test_one_that_had_joined_is_not_late_because_the_pool_is_not_known() -> None:
    assert told(became(Phase.BOOTING, busy=None, requested_at=NOW - 99999)) == ("pool-unknown",)


# ------------------------------------------------------------------------------- left on hold


def test_jobs_left_on_hold_are_released_where_nothing_else_does_that() -> None:
    shown = replace(snapshot(), schedds={"a": HELD, "b": HELD, "c": Unknown(DOWN, NOW, HELD)})
    back = RequeueJobs("a", ("7.0",), "i-1", Reason("machine-gone", "x"))
    assert [(one.schedd, one.jobs) for one in left_on_hold(shown, ())] == [("a", ("9.0",)), ("b", ("9.0",))]
    assert [one.schedd for one in left_on_hold(shown, (back,))] == ["b"]
    assert left_on_hold(snapshot(), ()) == ()


# ------------------------------------------------------------------------------- whatever is seen


@given(snapshots(), policies())
def test_whatever_is_seen_each_rule_acts_on_its_machine_alone_and_within_what_is_certain(
    shown: Snapshot, rules: Policy
) -> None:
    look = DecisionView(shown, rules)
    for machine in MachineCache().look(shown, rules).machines:
        found = disposition(machine, look)
        if found is None:
            assert machine.phase is Phase.JOINED
            continue
        assert not (found.ended and machine.phase is not Phase.GONE)
        answers = isinstance(shown.clouds[machine.cloud].machines, Known)
        for action in found.actions:
            if isinstance(action, Terminate):
                assert (action.cloud, action.machines) == (machine.cloud, (machine.id,))
                assert machine.phase is not Phase.GONE
            elif isinstance(action, RequeueJobs):
                assert action.machine == machine.id
                assert machine.phase is Phase.GONE
            else:
                assert isinstance(action, Drain | Undrain | Disown | Forget)
                assert (action.cloud, action.machine) == (machine.cloud, machine.id)
            if isinstance(action, Drain | Undrain | Disown):
                assert answers
            if isinstance(action, Drain):
                assert action.mode is (DrainMode.BUSY if machine.busy else DrainMode.EMPTY)
