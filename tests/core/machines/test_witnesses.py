"""Two witnesses before an end: in worlds whose sources lie, and case by case. Covers `witnesses`."""

import ast
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import updraft
from tests.rigs.annexworlds import annex
from tests.rigs.lyingworld import ABSURD, FAR, LEASE, SCHEDDS, Lies, Machine, World
from tests.rigs.snapshots import DOWN, NOW, gone, instance, pick, policy, record, slot, snapshot, worker
from updraft.core.limits.budget import budget
from updraft.core.machines.annex_leaving import GRACE
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.lifecycle import LET_GO
from updraft.core.machines.witnesses import in_doubt, is_over, longest_lease
from updraft.core.model import (
    PLAIN,
    Adopt,
    AtWork,
    CloudState,
    Drain,
    DrainMode,
    DrainRecord,
    Forget,
    Instance,
    Known,
    LedgerView,
    MachineRecord,
    Plan,
    Reason,
    RequeueJobs,
    RunningJob,
    ScheddView,
    Slot,
    Terminate,
    Undrain,
    Unknown,
)
from updraft.core.plan import plan
from updraft.core.settings import Policy, Timings

SOURCE = Path(updraft.__file__).parent
FRESH = slot("i-1", busy=True)
OVER = instance("i-1", CloudState.TERMINATED)
EMPTIED = DrainRecord(DrainMode.EMPTY, NOW - 70, Reason("idle-limit", "as a test says"), NOW - 69)
BOUND = Timings().schedd_patience
IDS = ("i-0", "i-1", "i-2")
OURS, ANOTHERS = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
WRONG = (CloudState.ERROR, CloudState.STOPPED, CloudState.TERMINATED, CloudState.PENDING, CloudState.STOPPING)


# ------------------------------------------------------------------------------------------- the worlds


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Machine]:
    """Three machines: at work, idle, not joined yet, dead or gone behind everybody's back."""
    made = {}
    for id_ in IDS:
        age = pick(draw, [20.0, 400.0, 5000.0])
        what = pick(draw, ["works", "works", "works", "idle", "boots", "dead", "gone"])
        one = Machine(id_, NOW - age)
        one.joined = what != "boots"
        one.heard = NOW - 1.0 if one.joined else 0.0
        if what in ("works", "dead", "gone"):
            one.job = pick(draw, [*SCHEDDS, *SCHEDDS, FAR])
            one.renewed = NOW - 1.0
        one.up = what not in ("dead", "gone")
        # Now and then all of this is of another pool that has the same name.
        one.identity = pick(draw, [OURS, OURS, OURS, "", ANOTHERS])
        one.there = what != "gone"
        one.job_id = f"{id_[-1]}.0"
        one.slots = pick(draw, [1, 1, 2])
        made[id_] = one
    first, second = made["i-0"], made["i-1"]
    if first.job and second.job and first.identity == second.identity and draw(st.booleans()):
        second.job, second.job_id = first.job, first.job_id  # one job runs on both
    return made


# A few of the machines; mostly none.
SOME = st.one_of(st.just(frozenset()), st.frozensets(st.sampled_from(IDS), max_size=3))
RARELY = st.sampled_from([False, False, False, True])


@st.composite
def lies(draw: st.DrawFn) -> Lies:
    """Any of them, at one look."""
    return Lies(
        left_out=draw(SOME),
        states=tuple((id_, pick(draw, WRONG)) for id_ in sorted(draw(SOME))),
        denied=draw(SOME),
        untagged=draw(SOME),
        listing_silent=draw(RARELY),
        listing_old=draw(RARELY),
        by_id_silent=draw(RARELY),
        lost_ads=draw(SOME),
        collector_new=draw(RARELY),
        collector_silent=draw(RARELY),
        forged=draw(SOME),
        silent=pick(draw, [frozenset(), frozenset(), frozenset({"one"}), frozenset(SCHEDDS)]),
        partly=pick(draw, [frozenset(), frozenset(), frozenset({"one"}), frozenset(SCHEDDS)]),
        absurd=tuple((id_, pick(draw, sorted(ABSURD))) for id_ in sorted(draw(SOME))),
        ledger_lost=pick(draw, [False] * 9 + [True]),
    )


@dataclass(frozen=True)
class Moment:
    """So many seconds pass, with these lies, and clocks may be set; then the controller looks, or it sleeps.

    A clock that is set while nobody looks is no lie that it could see.
    """

    seconds: float
    lies: Lies
    asleep: bool = False
    jump: float = 0.0

    def in_(self, world: World) -> Plan | None:
        """Let it come; what the controller wants then, None where it sleeps."""
        return world.decide(self.lies) if self.passes(world) else None

    def passes(self, world: World) -> bool:
        """Let it come; whether the controller looks then."""
        if self.jump and not self.asleep:
            world.jumps(self.jump)
        world.passes(self.seconds, self.lies)
        return not self.asleep


def a_moment(told: st.SearchStrategy[Lies]) -> st.SearchStrategy[Moment]:
    """One of a story."""
    return st.builds(
        Moment,
        st.sampled_from([2.0, 2.0, 12.0, 70.0, 700.0]),
        told,
        st.sampled_from([False, False, False, True]),
        st.sampled_from([0.0] * 6 + [4000.0, 100_000.0, -4000.0]),
    )


def moments(told: st.SearchStrategy[Lies]) -> st.SearchStrategy[list[Moment]]:
    """What happens one after the other."""
    return st.lists(a_moment(told), min_size=1, max_size=14)


def spared(world: World, made: Plan, told: Lies) -> None:
    """Nothing of this plan ends a living job, or touches what another pool of this name has launched.

    But where a deadline has passed that the policy or a person names, and no clock was set just now.
    """
    given_up, ended = set[str](), set[str]()
    for action in made.actions:
        if isinstance(action, Terminate):
            ended.update(action.machines)
        elif isinstance(action, Drain | Undrain | Adopt):
            assert world.machines[action.machine].identity != ANOTHERS
        elif isinstance(action, RequeueJobs):
            given_up.update(one.id for one in world.of_job(action.schedd, action.jobs))
        elif isinstance(action, Forget):
            given_up.add(action.machine)
    for id_ in ended:
        one = world.machines[id_]
        if not one.killed and not (world.settled and world.now >= world.deadline(one)):
            given_up.add(id_)
        assert one.identity != ANOTHERS, f"{id_} isn't ours"
    for id_ in given_up:
        one = world.machines[id_]
        assert one.identity != ANOTHERS, f"{id_} isn't ours"
        # A schedd that is silent, or that nobody can ask, can't object for ever: that is the bound. Of the
        # latter only the ledger knows, once the ads are gone.
        over = one.job in (*told.silent, FAR) and world.elapsed - one.seen >= BOUND
        over = over or (one.job == FAR and world.ledger_lost)
        assert not world.works(one) or over, f"{id_} works for {one.job}, and is given up"


@given(machines(), moments(lies()))
def test_1_no_living_job_is_ended_by_us_whatever_the_sources_say(
    there: dict[str, Machine], story: list[Moment]
) -> None:
    world = World(replace(policy(worker(idle_limit=60.0)), identity=OURS), there)
    for moment in story:
        made = moment.in_(world)
        if made is not None:
            spared(world, made, moment.lies)
            world.carry_out(made)


@pytest.mark.slow
@given(machines(), moments(lies()))
def test_5_what_is_idle_dead_or_gone_goes_when_the_sources_tell_the_truth_again(
    there: dict[str, Machine], story: list[Moment]
) -> None:
    """Within what the policy implies: the idle limit, the boot deadline, a lease, and the looks between.

    Leases and ads of the time before a clock was set back hold for as much longer.
    """
    world = World(replace(policy(worker(idle_limit=60.0, boot_deadline=300.0)), identity=OURS), there)
    for moment in story:
        made = moment.in_(world)
        if made is not None:
            world.carry_out(made)
    back = sum(-moment.jump for moment in story if moment.jump < 0)
    for _ in range(55 + int(back / 120.0)):
        world.passes(120.0, Lies())
        made = world.decide(Lies())
        spared(world, made, Lies())
        world.carry_out(made)
    for one in world.machines.values():
        if not world.works(one) and one.identity != ANOTHERS:
            assert not one.there, f"{one} was left"
            kept = world.records.get(one.id)
            assert kept is None or kept.ended_at is not None
            assert not one.job, "and its job runs elsewhere"


def blind() -> st.SearchStrategy[Lies]:
    """The cloud and the pool have forgotten the same machines."""
    all_or_one = st.sampled_from([frozenset(IDS), frozenset(IDS[:1])])
    often = st.sampled_from([False, True])
    return st.builds(
        Lies,
        left_out=all_or_one,
        always_denied=all_or_one,
        lost_ads=all_or_one,
        collector_new=often,
        collector_silent=often,
    )


ALL = frozenset(IDS)
# An ad that doesn't say when it was heard, after looks at which nothing was seen of anybody.
UNHEARD = [
    (2, Moment(2.0, Lies(left_out=ALL, always_denied=ALL, lost_ads=ALL))),
    (1, Moment(12.0, Lies(left_out=ALL, always_denied=ALL, lost_ads=ALL, collector_silent=True))),
    (1, Moment(2.0, Lies(left_out=frozenset({"i-0"}), absurd=(("i-0", "unheard"),)))),
]


@given(
    st.lists(st.sampled_from(["works", "idle"]), min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(1, 4), a_moment(st.one_of(blind(), lies()))), max_size=6),
)
@example(["works"] * 3, UNHEARD)
def test_4_what_lives_counts_against_limits_whatever_the_sources_say(
    there: list[str], spells: list[tuple[int, Moment]]
) -> None:
    """Even where its cloud denies it again and again, asked by its id, as long as the pool can't bear it out.

    Of machines that the controller has known once. Ads are lost while a collector is young, or their machine
    would be heard of.
    """
    made = {id_: Machine(id_, NOW - 5000.0, heard=NOW - 1.0, identity=OURS) for id_ in IDS}
    for one, what in zip(made.values(), there, strict=True):
        one.job, one.renewed = ("one" if what == "works" else ""), NOW - 1.0
    world = World(replace(policy(worker(idle_limit=60.0)), identity=OURS), made)
    age = world.policy.timings.collector_age
    story = [moment for times, moment in spells for _ in range(times)]
    for moment in [Moment(2.0, Lies()), *story]:
        young = moment.lies.collector_new or world.now + moment.seconds - world.collector_started < age
        lost = moment.lies.lost_ads if young else frozenset()
        told = replace(moment.lies, lost_ads=lost, ledger_lost=False)
        if replace(moment, lies=told).passes(world):
            seen = world.look(told)
            cache = MachineCache()
            cache.look(seen, world.policy)
            counted = budget(cache, (), (), frozenset(), seen, world.policy).pool.machines
            assert counted >= sum(one.there and one.up for one in made.values())
            world.carry_out(world.decide_on(seen))


LEASED = annex(until=NOW + 500.0)


@st.composite
def bound_to_go(draw: st.DrawFn) -> dict[str, Machine]:
    """The same machines, of which some are an annex's."""
    made = draw(machines())
    for one in made.values():
        one.variant = pick(draw, [PLAIN, LEASED.variant])
    return made


@st.composite
def lies_and_wishes(draw: st.DrawFn) -> Lies:
    """Now and then somebody drains machines by hand, and few of them with their jobs."""
    wanted = [(id_, pick(draw, [False, False, True])) for id_ in sorted(draw(SOME))]
    return replace(draw(lies()), wanted=tuple(wanted) if draw(st.integers(0, 3)) == 0 else ())


@pytest.mark.slow
@given(bound_to_go(), moments(lies_and_wishes()))
def test_5_a_deadline_that_the_policy_names_ends_what_works_not_sooner_and_not_much_later(
    there: dict[str, Machine], story: list[Moment]
) -> None:
    """A lifetime of ten minutes and five more for jobs, an annex's lease, a drain by hand.

    Each ends what works a few looks after its deadline, once the sources tell the truth and no clock was set
    for 15 minutes.
    """
    short = worker(idle_limit=60.0, boot_deadline=300.0, lifetime=600.0, drain_deadline=300.0)
    world = World(replace(policy(short), identity=OURS), there, annexes=(LEASED,))
    for moment in story:
        made = moment.in_(world)
        if made is not None:
            spared(world, made, moment.lies)
            world.carry_out(made)
    worked = [one for one in world.machines.values() if world.works(one) and one.identity != ANOTHERS]
    certain = max(world.now, (world.jumped_at or 0.0) + world.policy.timings.collector_age)
    back = sum(-moment.jump for moment in story if moment.jump < 0)
    for _ in range(20 + int((LEASE + back) / _LOOK)):
        world.passes(_LOOK, Lies())
        made = world.decide(Lies())
        spared(world, made, Lies())
        world.carry_out(made)
        for one in worked:
            over = world.now - max(world.deadline(one) + GRACE, certain)
            assert over < 4 * _LOOK or not one.there, f"{one} was left"
    for one in world.machines.values():
        assert one.identity == ANOTHERS or not one.there, f"{one} was left"


_LOOK = 120.0


def test_one_that_comes_back_after_its_end_is_ended_again() -> None:
    """Its cloud had called it terminated; a leak otherwise, since the ledger took it for over."""
    ended = gone("i-1", drain=EMPTIED, terminate_asked_at=NOW - 99, ended_at=NOW - 20, end=EMPTIED.reason)
    made = plan(snapshot(instances=[instance("i-1")], records=[ended], running=()), policy())
    assert [type(one) for one in made.actions] == [Adopt, Terminate]
    assert [one.ended_at for one in made.records] == [None]
    disowned = replace(ended, end=Reason(LET_GO, "as a test says"))
    assert plan(snapshot(instances=[instance("i-1")], records=[disowned]), policy()).actions == ()


# ------------------------------------------------------------------------------------------ case by case


def over(
    kept: MachineRecord, *, listed: Instance | None = None, slots: tuple[Slot, ...] = (), said: object = "x"
) -> bool:
    """Whether it is over; `said` is what its cloud says of its id, "x" for nothing."""
    found = {} if said == "x" else {"i-1": said}
    shown = snapshot(instances=[listed] if listed else [], records=[kept], slots=slots, found=found)  # type: ignore[arg-type]
    return is_over(kept, listed, slots, shown, policy())


@pytest.mark.parametrize("listed", [None, OVER])
def test_its_cloud_has_to_say_so_twice(listed: Instance | None) -> None:
    once = gone("i-1", gone_since=None)
    assert not over(once, listed=listed)
    assert not over(once, listed=listed, said=None)
    assert not over(gone("i-1", gone_since=NOW - 9), listed=listed, said=None), "a moment apart"
    assert over(gone("i-1"), listed=listed, said=None)
    assert over(gone("i-1"), listed=listed, said=OVER)


def test_one_that_joined_and_was_never_listed_takes_two_words_too() -> None:
    joined = gone("i-1", seen_at=None, missing_since=NOW - 100, gone_since=None)
    assert not over(joined, said=None)
    assert over(replace(joined, gone_since=NOW - 12), said=None)
    assert over(replace(joined, joined_at=None), said=None), "nothing ever ran there"


def test_one_that_is_there_by_its_id_is_not_over() -> None:
    assert not over(gone("i-1"), said=instance("i-1"))
    (seen,) = (
        MachineCache()
        .look(snapshot(records=[gone("i-1")], slots=[FRESH], found={"i-1": instance("i-1")}), policy())
        .machines
    )
    assert (seen.phase, seen.record.gone_since) == ("joined", None)


def test_of_one_that_was_closed_when_it_was_empty_one_word_is_enough() -> None:
    made = plan(
        snapshot(
            instances=[OVER],
            records=[gone("i-1", gone_since=None, drain=EMPTIED, terminate_asked_at=NOW - 9)],
        ),
        policy(),
    )
    assert [one.ended_at for one in made.records] == [NOW]


@pytest.mark.parametrize("silent", [False, True])
def test_who_was_heard_of_since_is_asked_for_anew(silent: bool) -> None:
    """Also while the listing is silent, and only questions about ids are answered."""
    shown = snapshot(records=[gone("i-1")], slots=[replace(FRESH, heard=NOW - 1)], found={"i-1": None})
    if silent:
        shown = replace(shown, clouds={"c1": replace(shown.clouds["c1"], machines=Unknown(DOWN, NOW))})
    (seen,) = MachineCache().look(shown, policy()).machines
    assert (seen.phase, seen.record.gone_since, seen.record.gone_heard) == ("joined", NOW, NOW - 1)


def test_what_was_just_launched_is_not_asked_for_before_it_may_be_listed() -> None:
    young = record("i-1", missing_since=NOW - 30)
    assert not in_doubt(young, snapshot(records=[young]), policy())
    assert in_doubt(replace(young, missing_since=NOW - 61), snapshot(), policy())
    assert in_doubt(replace(young, seen_at=NOW - 40), snapshot(), policy())


def test_nothing_waits_until_a_clock_that_was_set_back_is_as_late_again() -> None:
    ahead = dict.fromkeys(
        ("joined_at", "last_claimed_at", "seen_at", "requested_at", "silent_since"), NOW + 4000
    )
    drain = DrainRecord(DrainMode.EMPTY, NOW + 4000, EMPTIED.reason, NOW + 4001)
    (seen,) = (
        MachineCache()
        .look(snapshot(instances=[instance("i-1")], records=[record("i-1", drain=drain, **ahead)]), policy())
        .machines
    )
    kept = seen.record
    assert [getattr(kept, name) for name in ahead] == [NOW] * 5
    assert kept.drain is not None
    assert (kept.drain.asked_at, kept.drain.accepted_at) == (NOW, NOW)


def test_the_plan_asks_for_what_it_has_to_know() -> None:
    kept = gone("i-1", gone_since=None)
    asked = plan(snapshot(records=[kept], running=None), policy()).questions
    assert asked.machines == asked.jobs == {("c1", "i-1")}
    well = record("i-1", joined_at=NOW - 3500, last_claimed_at=NOW - 5, job_starts=3, seen_at=NOW - 3500)
    told = plan(snapshot(instances=[instance("i-1")], slots=[FRESH], records=[well]), policy())
    assert not told.questions.machines
    assert not told.questions.jobs


def test_a_silent_schedd_objects_until_the_longest_lease_that_is_known() -> None:
    job = RunningJob("schedd", "7.0", "slot1_1@i-9@host", "alice", NOW - 100 + 4000)
    last = Known(ScheddView(running=(job,)), NOW - 100)
    silent = {"schedd": Unknown(DOWN, NOW - 90, last)}
    assert longest_lease(replace(snapshot(), schedds=silent)) == 4000
    for since, ended in ((3990, []), (4001, [("i-1",)])):
        kept = record("i-1", joined_at=NOW - 9000, silent_since=NOW - since, seen_at=NOW - 9000)
        shown = replace(snapshot(instances=[instance("i-1")], records=[kept]), schedds=silent)
        made = plan(shown, policy())
        assert [one.machines for one in made.actions if isinstance(one, Terminate)] == ended


def test_a_schedd_that_answers_is_asked_before_the_bound_counts() -> None:
    """As at the first look after a controller slept: since when a machine is silent, its ledger knows."""
    kept = record("i-1", joined_at=NOW - 9000, silent_since=NOW - 8000, seen_at=NOW - 9000)
    for one, listed in ((kept, [instance("i-1")]), (gone("i-1", missing_since=NOW - 8000), [])):
        shown = snapshot(instances=listed, records=[one], found={"i-1": None}, running=None)
        made = plan(shown, policy())
        assert not [one for one in made.actions if isinstance(one, Terminate)]
        assert not [one for one in made.records if one.ended_at]
        assert made.questions.jobs == {("c1", "i-1")}


def test_a_schedd_that_flocks_here_and_is_in_no_list_objects_too() -> None:
    """By the ids of jobs in the slots' last ads. It can't be asked, so that the bound ends the machine."""
    at_work = replace(slot("i-1", busy=True), schedds=("far", "schedd"))
    kept = record("i-1", joined_at=NOW - 9000, last_claimed_at=NOW - 9, seen_at=NOW - 9000)
    seen = plan(snapshot(instances=[instance("i-1")], slots=[at_work], records=[kept]), policy())
    (kept,) = seen.records
    assert kept.other_schedds == ("far",)
    for since, ended in ((1790, []), (1801, [("i-1",)])):
        silent = replace(kept, silent_since=NOW - since)
        made = plan(snapshot(instances=[instance("i-1")], records=[silent], running=[]), policy())
        assert [one.machines for one in made.actions if isinstance(one, Terminate)] == ended


def test_the_jobs_of_one_that_is_gone_go_back_though_another_schedd_is_silent() -> None:
    job = RunningJob("schedd", "7.0", "slot1_1@i-1@host", "alice", NOW + 500)
    shown = snapshot(records=[gone("i-1")], found={"i-1": None}, running=(job,))
    for since, ended in ((60, []), (9000, [])):
        made = plan(replace(shown, schedds={**shown.schedds, "other": Unknown(DOWN, NOW - since)}), policy())
        assert [one.jobs for one in made.actions if isinstance(one, RequeueJobs)] == [("7.0",)]
        assert [one.ended_at for one in made.records if one.ended_at] == ended, "it has jobs to give back yet"


# ------------------------------------------------------------------------------------------ ads that are old


OFTEN = policy(timings=Timings(update_interval=5.0))
AT_WORK = record("i-1", joined_at=NOW - 3500, last_claimed_at=NOW - 400, job_starts=3, seen_at=NOW - 3500)


def aged(age: float, rules: Policy, *, kept: MachineRecord = AT_WORK, **changes: object) -> Plan:
    """The plan about a machine that is busy by an ad of this age, with who is at work noted apart."""
    shown = snapshot(instances=[instance("i-1")], slots=[replace(FRESH, heard=NOW - age)], records=[kept])
    ledger = replace(shown.ledger, at_work=AtWork(frozenset({("c1", "i-1")}), NOW - 2))
    return plan(replace(shown, ledger=ledger, **changes), rules)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "age", "code"),
    [
        (OFTEN, 59, "busy"),
        (OFTEN, 61, "doubted"),
        (policy(timings=Timings(update_interval=90.0)), 179, "busy"),
        (policy(timings=Timings(update_interval=90.0)), 181, "doubted"),
        (policy(), 599, "busy"),
        (policy(), 601, "doubted"),
        (policy(timings=Timings(stale_ad=120.0)), 81, "doubted"),
        (policy(), 901, "vanished"),
    ],
)
def test_a_busy_machine_whose_ad_is_much_older_than_its_interval_is_doubted_by_name(
    rules: Policy, age: float, code: str
) -> None:
    made = aged(age, rules)
    (told,) = made.machines
    assert told.reason.code == code
    assert [one.code for one in made.warnings if "machine i-1" in one.text] == [code] * (code == "doubted")
    assert ("c1", "i-1") in made.questions.jobs or code == "busy", "schedds are asked before it is judged"
    assert (made.at_work == {("c1", "i-1")}) is (code == "busy")


def test_it_was_last_seen_busy_when_it_was_last_heard_of() -> None:
    made = aged(300, OFTEN)
    (kept,) = made.records
    assert kept.last_claimed_at == NOW - 300
    later = aged(320, OFTEN, kept=replace(kept, last_claimed_at=NOW - 320), now=NOW)
    assert not later.records
    back = replace(kept, last_claimed_at=NOW - 320)
    shown = snapshot(instances=[instance("i-1")], slots=[FRESH], records=[back])
    (again,) = plan(shown, OFTEN).records
    assert (again.last_claimed_at, again.gaps) == (NOW, ()), (
        "it was at work all the time, and not idle between"
    )


@pytest.mark.parametrize(("running", "does"), [((), ["Terminate"]), (None, [])])
def test_an_ad_that_is_too_old_is_called_so_and_nobody_waits_for_the_collector_to_drop_it(
    running: tuple[RunningJob, ...] | None, does: list[str]
) -> None:
    shown = snapshot(
        instances=[instance("i-1")],
        slots=[replace(FRESH, heard=NOW - 1260)],
        records=[replace(AT_WORK, silent_since=NOW - 2)],
        running=running,
    )
    made = plan(shown, policy())
    assert [type(one).__name__ for one in made.actions] == does
    assert "its last ad is 21 min old" in made.machines[0].reason.text
    assert "left the pool" not in made.machines[0].reason.text
    assert not plan(replace(shown, jumped_at=NOW - 60), policy()).actions, "its age is told by a clock"


def test_an_ad_that_does_not_say_when_it_was_heard_is_heard() -> None:
    """Its collector keeps none for ever, and has it."""
    found = instance("i-1", launched_at=NOW - 9000)
    silent = {"schedd": Unknown(DOWN, NOW - 2)}
    shown = snapshot(instances=[found], slots=[replace(FRESH, heard=0.0)])
    for kept in ([], [AT_WORK]):
        made = plan(replace(shown, schedds=silent, ledger=LedgerView(machines=tuple(kept))), policy())
        assert [one.phase for one in made.machines] == ["joined"]
        assert not [one for one in made.actions if isinstance(one, Terminate)]


def test_one_of_which_only_its_tags_are_known_may_have_been_heard_of_until_then() -> None:
    """Its ledger is lost, and so are its ads: a silent schedd objects as if it had just been heard of."""
    for seen, ended in ((1790, []), (1801, [("i-1",)])):
        kept = record("i-1", requested_at=NOW - 9000, seen_at=NOW - seen, adopted=True)
        shown = snapshot(instances=[instance("i-1")], records=[kept])
        made = plan(replace(shown, schedds={"schedd": Unknown(DOWN, NOW - 9000)}), policy())
        assert [one.machines for one in made.actions if isinstance(one, Terminate)] == ended


@pytest.mark.parametrize(
    ("running", "ended"),
    [
        ((), [("i-1",)]),
        (None, []),
        ((RunningJob("schedd", "7.0", "slot1_1@i-1@host", "alice", NOW + 500),), []),
    ],
)
def test_one_that_was_closed_while_jobs_ran_is_not_empty_by_its_ads_alone(
    running: tuple[RunningJob, ...] | None, ended: list[tuple[str, ...]]
) -> None:
    """Another machine's token may have made them."""
    closed = DrainRecord(DrainMode.BUSY, NOW - 70, Reason("lifetime", "as a test says"), NOW - 69, NOW + 500)
    kept = replace(AT_WORK, drain=closed, last_claimed_at=NOW - 5)
    empty = replace(slot("i-1"), draining=True, drain_reason="updraft lifetime: x")
    shown = snapshot(instances=[instance("i-1")], slots=[empty], records=[kept], running=running)
    made = plan(shown, policy())
    assert [one.machines for one in made.actions if isinstance(one, Terminate)] == ended
    assert made.questions.jobs == {("c1", "i-1")}


@pytest.mark.parametrize(("busy_ago", "ended"), [(1790, []), (1801, [("i-1",)])])
def test_it_is_ended_though_one_of_its_schedds_can_not_be_asked(
    busy_ago: float, ended: list[tuple[str, ...]]
) -> None:
    closed = DrainRecord(DrainMode.BUSY, NOW - 5000, Reason("lifetime", "as a test says"), NOW - 4999)
    kept = replace(AT_WORK, drain=closed, last_claimed_at=NOW - busy_ago, other_schedds=("far",))
    empty = replace(slot("i-1"), draining=True, drain_reason="updraft lifetime: x")
    made = plan(snapshot(instances=[instance("i-1")], slots=[empty], records=[kept]), policy())
    assert [one.machines for one in made.actions if isinstance(one, Terminate)] == ended


# ---------------------------------------------------------------------------------------------- one road


def calls_in_the_source(*names: str) -> set[tuple[str, str, str]]:
    """The names that are called, each with the module and the function; but for simulations' rivals."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        text = path.read_text(encoding="utf-8")
        if module.startswith("sim/rivals/") or not any(f"{name}(" in text for name in names):
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef):
                made = {
                    one.func.id if isinstance(one.func, ast.Name) else getattr(one.func, "attr", "")
                    for one in ast.walk(function)
                    if isinstance(one, ast.Call)
                }
                found.update((name, module, function.name) for name in made.intersection(names))
    return found


def test_ends_are_made_on_one_road_only() -> None:
    """As docs/explanation/safety.md says it. `plan._actions` puts the ends of one cloud together."""
    assert calls_in_the_source("Terminate", "Forget", "RequeueJobs") == {
        ("Terminate", "core/machines/dispositions.py", "_terminate"),
        ("Terminate", "core/plan.py", "_ends"),
        ("Forget", "core/machines/leaving.py", "_gone"),
        ("RequeueJobs", "core/machines/leaving.py", "_given_back"),
        ("RequeueJobs", "core/machines/leaving.py", "left_on_hold"),
    }
    assert calls_in_the_source("_given_back") == {("_given_back", "core/machines/leaving.py", "_gone")}
    ends = {
        (module, name)
        for _, module, name in calls_in_the_source("_terminate")
        if module == "core/machines/dispositions.py"
    }
    assert ends == {
        ("core/machines/dispositions.py", name) for name in ("end", "end_by_deadline", "end_by_hand")
    }
    by_clock = {(module, name) for _, module, name in calls_in_the_source("end_by_deadline", "end_by_hand")}
    assert by_clock == {
        ("core/machines/leaving.py", "_draining"),
        ("core/machines/leaving.py", "_killed"),
        ("core/machines/stubborn.py", "overdue"),
        ("core/machines/annex_leaving.py", "_over"),
        ("core/machines/annex_leaving.py", "_stopped"),
    }


# ------------------------------------------------------------------------------- pools of the same name


def test_what_another_pool_of_this_name_has_launched_is_named_and_not_touched() -> None:
    theirs = [instance(f"i-{n}", identity=ANOTHERS) for n in range(5)]
    made = plan(
        snapshot(instances=[*theirs, instance("i-9", identity=OURS)], slots=[slot("i-1")]),
        replace(policy(), identity=OURS),
    )
    assert [action.machine for action in made.actions if isinstance(action, Adopt)] == ["i-9"]
    assert {one.machine for one in made.machines} == {"i-9"}
    (told,) = [one for one in made.warnings if one.code == "another-pool"]
    assert "5 machines of another pool of this name on cloud c1: i-0, i-1, i-2 and more" in told.text
    assert f"`updraft adopt --take-over --identity {ANOTHERS}`" in told.text
    assert "unexplained-slot" not in {one.code for one in made.warnings}


def test_a_tag_that_anybody_may_have_written_is_no_command() -> None:
    made = plan(snapshot(instances=[instance("i-1", identity="$(reboot)")]), replace(policy(), identity=OURS))
    (told,) = [one for one in made.warnings if one.code == "another-pool"]
    assert "--take-over" not in told.text
    assert not made.actions


def test_one_of_ours_that_another_pool_took_can_be_let_go_with_its_tags() -> None:
    kept = record("i-1", joined_at=NOW - 3500, seen_at=NOW - 3500, let_go=Reason(LET_GO, "as a test says"))
    shown = snapshot(instances=[instance("i-1", identity=ANOTHERS)], slots=[slot("i-1")], records=[kept])
    made = plan(shown, replace(policy(), identity=OURS))
    assert not made.actions
    assert [(one.id, one.end) for one in made.records if one.ended_at] == [("i-1", kept.let_go)]
