"""Records of what was used, made as a daemon makes them: by looks, into a real ledger."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from updraft.core.model import Reason
from updraft.core.model.used import ABSENT, InPool, MachineFacts, MachineId, Meters, Sighting, UserClaim
from updraft.core.settings import DAY
from updraft.core.usage.booking import LONGEST, turn
from updraft.ledger import Ledger

FIRST = 20_758 * DAY
"""2026-11-01, 00:00 UTC."""
FACTS = MachineFacts(
    "demo", "here", "i-1", "north", "z1", "small", "spot", "img", "default", "", "", 4, 8192, 1, FIRST, 0.36,
    "EUR", "site", "hepscore23", 12.5,
)  # fmt: skip
END = Reason("idle-limit", "nothing to do")


def busy(facts: MachineFacts, *claims: UserClaim, begun: int = 0) -> Sighting:
    """A machine in the pool, with these claims."""
    return Sighting(facts, True, InPool(True, tuple(sorted(claims)), begun, facts.begin))


def over(facts: MachineFacts, at: float, reason: Reason = END) -> Sighting:
    """A machine that ended then."""
    return Sighting(facts, None, ABSENT, (at, reason))


def book(ledger: Ledger, looks: Mapping[float, Iterable[Sighting]], meters: Meters | None = None) -> Meters:
    """Write what these looks add; a look that is missing for longer than one holds is made in between."""
    meters = ledger.meters() if meters is None else meters
    last: Iterable[Sighting] = ()
    for at, some in sorted(looks.items()):
        while last and meters.at is not None and at - meters.at > LONGEST:
            meters = _look(ledger, last, meters.at + LONGEST, meters)
        last = [one for one in some if one.ended is None]
        meters = _look(ledger, some, at, meters)
    return meters


def _look(ledger: Ledger, some: Iterable[Sighting], at: float, meters: Meters) -> Meters:
    seen: dict[MachineId, Sighting] = {one.facts.key: one for one in some}
    meters, books = turn(meters, seen, at, booked=ledger.booked(seen.keys() - meters.machines.keys()))
    ledger.book(books)
    return meters


ALICE, BOB = UserClaim("alice@pool", "physics", 2, 1, FIRST), UserClaim("bob@pool", "", 1, 0, FIRST)
SECOND = replace(FACTS, id="i-2", cloud="there", flavor="large", cores=8, gpus=0, price=None, source="")
THIRD = replace(FACTS, id="i-3", begin=FIRST + 2 * DAY, annex="big", owner="alice")


def november(ledger: Ledger) -> None:
    """The first: i-1 for two hours, in the first of which alice has two cores and bob one; i-2 for an hour,
    unused and of unknown price. The third: i-3 of alice's annex, on which she has two cores since two hours.
    """
    hour = 3600.0
    looks = {
        FIRST - 1: (),
        FIRST: (busy(FACTS, begun=0), busy(SECOND)),
        FIRST + 1: (busy(FACTS, ALICE, BOB, begun=3), busy(SECOND)),
        FIRST + hour: (busy(FACTS, begun=3), over(SECOND, FIRST + hour)),
        FIRST + 2 * hour: (over(FACTS, FIRST + 2 * hour),),
        FIRST + DAY + 1: (),
        THIRD.begin - 1: (),
        THIRD.begin: (busy(THIRD, ALICE),),
        THIRD.begin + 2 * hour: (busy(THIRD, ALICE),),
    }
    book(ledger, looks)
