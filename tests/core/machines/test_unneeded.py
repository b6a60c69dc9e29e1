"""Which launches' tokens are over: those of which no machine is there, and none can come."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import DOWN, instance, record
from updraft.core.machines.unneeded import BY_HAND, unneeded
from updraft.core.model import (
    CloudState,
    CloudView,
    Instance,
    Known,
    LaunchRecord,
    LaunchState,
    LedgerView,
    Quota,
    Reason,
    Resources,
    Unknown,
)

ENDED = record("i-1", launch_key="l1", ended_at=90.0)
ALIVE = record("i-2", launch_key="l1")


def launch(
    key: str = "l1", state: LaunchState = LaunchState.ACCEPTED, ids: tuple[str, ...] = ("i-1",)
) -> LaunchRecord:
    return LaunchRecord(
        key, "c1", "z1", "small", "on-demand", "default", "img", "g1", 1, Resources(), None, 50.0, state, ids
    )  # fmt: skip


def cloud(*instances: Instance, silent: bool = False) -> dict[str, CloudView]:
    known = Known(instances, 100.0)
    machines = Unknown(DOWN, 95.0, known) if silent else known
    return {"c1": CloudView(machines, Known((), 100.0), Known(Quota(), 100.0))}


def over(
    *machines: object, launches: tuple[LaunchRecord, ...] = (), seen: dict[str, CloudView] | None = None
) -> set[str]:
    return set(unneeded(LedgerView(launches, machines), cloud() if seen is None else seen))  # type: ignore[arg-type]


def test_a_launch_whose_machines_have_all_ended() -> None:
    assert over(ENDED, launches=(launch(),)) == {"l1"}
    assert over(ENDED) == {"l1"}, "its row is only of the last day"
    assert over(ENDED, ALIVE) == set()


def test_a_launch_that_came_to_nothing() -> None:
    for state in (LaunchState.REFUSED, LaunchState.SETTLED):
        assert over(launches=(launch(state=state, ids=()),)) == {"l1"}
    assert over(launches=(launch(),)) == set(), "its machine is written down in the same step"


@pytest.mark.parametrize("state", [LaunchState.INTENDED, LaunchState.UNKNOWN])
def test_a_launch_without_an_answer_keeps_its_token(state: LaunchState) -> None:
    assert over(ENDED, launches=(launch(state=state),)) == set()


def test_what_the_cloud_shows_or_does_not_say_keeps_it() -> None:
    shown = instance("i-9", launch_key="l1")
    assert over(ENDED, seen=cloud(shown)) == set()
    assert over(ENDED, seen=cloud(replace(shown, state=CloudState.TERMINATED))) == {"l1"}
    assert over(ENDED, seen=cloud(silent=True)) == set(), "unknown is not gone"
    assert over(ENDED, seen={}) == set(), "a cloud that is no longer configured says nothing"


def test_a_machine_that_was_let_go_works_on_with_its_token() -> None:
    assert over(replace(ENDED, let_go=Reason("disown", "it stays"))) == set()


def test_a_token_made_by_hand_may_have_further_machines() -> None:
    assert over(replace(ENDED, launch_key=f"{BY_HAND}1")) == set()
    assert over(replace(ENDED, launch_key="")) == set()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=8),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(LaunchState)), max_size=4),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(CloudState)), max_size=4),
    st.booleans(),
)
def test_no_token_goes_that_a_machine_may_still_need(
    rows: list[tuple[str, bool, bool]],
    launches: list[tuple[str, LaunchState]],
    shown: list[tuple[str, CloudState]],
    silent: bool,
) -> None:
    machines = [
        record(
            f"i-{n}",
            launch_key=key,
            ended_at=90.0 if ended else None,
            let_go=Reason("x", "x") if gone else None,
        )
        for n, (key, ended, gone) in enumerate(rows)
    ]
    seen = cloud(
        *(instance(f"s-{n}", launch_key=key, state=state) for n, (key, state) in enumerate(shown)),
        silent=silent,
    )
    found = over(*machines, launches=tuple(launch(key, state, ()) for key, state in launches), seen=seen)
    assert not (silent and found)
    assert not found & {key for key, ended, gone in rows if not ended or gone}
    assert not found & {
        key for key, state in launches if state in (LaunchState.INTENDED, LaunchState.UNKNOWN)
    }
    assert not found & {key for key, state in shown if state not in (CloudState.TERMINATED, CloudState.ERROR)}
