"""Startds that don't answer, or say what isn't so: the ends of their machines are late, and come."""

from dataclasses import replace

import pytest

from tests.core.machines.test_leaving import BUSY, BY_HAND, became, silent, told
from tests.rigs.snapshots import NOW, policy, snapshot, worker
from updraft.core.model import DrainMode, DrainRecord, Phase

LIES: dict[str, tuple[Phase, bool, dict[str, object]]] = {
    "says that it idles, and refuses": (Phase.JOINED, False, {}),
    "says that it works for ever": (Phase.JOINED, True, {}),
    "never answers": (Phase.JOINED, True, {"unanswered_since": NOW - 90, "unanswered_at": NOW - 5}),
    "never answers a drain": (Phase.JOINED, True, {"drain": replace(BUSY, accepted_at=None)}),
    "says that somebody else drains it": (Phase.DRAINING, True, {"drain": None}),
    "says that it drains, and doesn't answer": (
        Phase.DRAINING,
        True,
        {"drain": replace(BUSY, accepted_at=None), "unanswered_since": NOW - 90, "unanswered_at": NOW - 5},
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_who_is_to_go_with_his_jobs_goes_whatever_his_startd_says(lie: str) -> None:
    phase, busy, changes = LIES[lie]
    wanted = DrainRecord(DrainMode.BUSY, NOW, BY_HAND, deadline=NOW)
    found = became(phase, busy=busy, wanted_drain=wanted, **changes)  # type: ignore[arg-type]
    assert told(found) == ("operator", "terminate")


@pytest.mark.parametrize("lie", LIES)
def test_beyond_its_lifetime_and_drain_a_machine_goes_whatever_its_startd_says(lie: str) -> None:
    """It stayed, as long as its ads were renewed: a machine that a thief has taken never closes."""
    phase, busy, changes = LIES[lie]
    for over, ends in ((599.0, False), (601.0, True)):
        short = policy(worker(lifetime=2900.0 - over, drain_deadline=700.0))
        found = became(phase, busy=busy, rules=short, **changes)  # type: ignore[arg-type]
        assert (told(found) == ("deadline", "terminate")) == ends
    gone = policy(worker(lifetime=100.0, drain_deadline=100.0))
    silence = became(phase, busy=busy, rules=gone, shown=silent(), **changes)  # type: ignore[arg-type]
    assert silence is None or not silence.actions
    jumped = replace(snapshot(), jumped_at=NOW - 5)
    found = became(phase, busy=busy, rules=gone, shown=jumped, **changes)  # type: ignore[arg-type]
    assert found is None or "terminate" not in told(found)
