"""Machines of the site's own: room that costs nothing, as much of it as takes jobs, and never touched."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import ASK, NOW, SMALL, group, policy, slot, snapshot
from updraft.core.model import CollectorView, Kind, Known, Launch, Reason, Resources, Slot, Snapshot, Verdict
from updraft.core.plan import plan

SITE, THEIRS = "foreign/site", "foreign/theirs"  # the second's START refuses our jobs
STALE = 5000.0


def desk(name: str, **changes: object) -> Slot:
    """A slot of a machine that nobody launched: partitionable and of two cores, unless it says otherwise."""
    made = slot(name, instance_id="", cloud="", launch_key="", kind=SITE, free=SMALL)
    return replace(made, **changes)  # type: ignore[arg-type]


def seen(slots: list[Slot], idle: int) -> Snapshot:
    """One-core jobs, and these slots of the site's own in the collector."""
    whole, static = (Kind(SITE, "[]", SMALL), Kind(SITE + "/static", "[]", SMALL, partitionable=False))
    shown = snapshot(groups=[group("g", idle)] if idle else [])
    refused = Verdict(0, ASK, (Reason("requirements", "Start is false"),))
    verdicts = {
        ("g", whole.key): Verdict(2, ASK),
        ("g", static.key): Verdict(1, ASK),
        ("g", THEIRS): refused,
    }
    return replace(
        shown,
        collector=Known(CollectorView(tuple(slots), NOW - 100_000, NOW - 5), NOW),
        kinds={**shown.kinds, whole.key: whole, static.key: static, THEIRS: replace(whole, key=THEIRS)},
        verdicts={**shown.verdicts, **verdicts},
    )


def bought(shown: Snapshot) -> int:
    """Cores that the plan buys; it does nothing else."""
    actions = plan(shown, policy()).actions
    assert all(isinstance(action, Launch) for action in actions)
    return sum(a.count * a.offer.resources.cpus for a in actions if isinstance(a, Launch))


@st.composite
def desks(draw: st.DrawFn, name: str) -> tuple[Slot, int]:
    """A slot of any state, and how many one-core jobs it takes now."""
    static = draw(st.booleans())
    state = draw(st.sampled_from(["Unclaimed", "Claimed", "Owner", "Drained"])) if static else "Unclaimed"
    free = draw(st.integers(0, 2))
    closed = draw(st.sampled_from(["", "", "", "drains", "accepts nothing", "stale", "refuses"]))
    room = (1 if state == "Unclaimed" else 0) if static else free
    made = desk(
        name,
        partitionable=not static,
        kind=THEIRS if closed == "refuses" else SITE + "/static" * static,
        state=state,
        free=Resources(free, SMALL.memory, SMALL.disk),
        draining=closed == "drains",
        accepting=closed != "accepts nothing",
        heard=NOW - (STALE if closed == "stale" else 5),
    )
    return made, 0 if closed else room


@pytest.mark.slow
@given(st.data(), st.integers(0, 12))
def test_what_the_site_has_no_room_for_is_bought_and_nothing_else(data: st.DataObject, idle: int) -> None:
    found = [data.draw(desks(f"desk{n}")) for n in range(data.draw(st.integers(0, 5)))]
    room = sum(cores for _, cores in found)
    needed = max(0, idle - room)
    cores = bought(seen([one for one, _ in found], idle))
    assert needed <= cores <= max(8 * math.ceil(needed / 8), needed + 1)
    assert (cores == 0) == (needed == 0)


def test_one_that_disappears_is_no_room_from_then_on() -> None:
    assert bought(seen([desk("a"), desk("b")], 4)) == 0
    assert bought(seen([desk("a"), desk("b", heard=NOW - STALE)], 4)) == 2, "its ad is no longer renewed"
    assert bought(seen([desk("a")], 4)) == 2, "its ad is gone"
    assert bought(seen([], 4)) == 4


def test_one_that_comes_makes_no_machine_of_ours_go_before_its_time() -> None:
    ours = slot("i-1", busy=True)
    shown = seen([desk("a"), ours], 0)
    assert not plan(shown, policy()).actions
