"""Annexes for tests: one of which nothing special is known, and what is on sale for it."""

from collections.abc import Iterable
from dataclasses import replace

from tests.rigs.snapshots import NOW
from updraft.core.model import Annex, Kind, Snapshot


def annex(name: str = "big", **changes: object) -> Annex:
    """One machine for alice for an hour."""
    made = Annex(name, "alice", "default", 1, 0, NOW + 3600, 900.0, since=NOW - 60)
    return replace(made, **changes)  # type: ignore[arg-type]


def with_annexes(shown: Snapshot, annexes: Iterable[Annex]) -> Snapshot:
    """The same with these annexes; all that is sold is sold for each of them, for any jobs."""
    some = tuple(annexes)
    offers, kinds, verdicts = list(shown.offers), dict(shown.kinds), dict(shown.verdicts)
    for one in some:
        for offer in shown.offers:
            if not offer.variant:
                kind = f"{offer.kind}?{one.variant.text}"
                kinds[kind] = Kind(kind, "[]", offer.resources)
                fits = {pair: found for pair, found in shown.verdicts.items() if pair[1] == offer.kind}
                verdicts |= {(group, kind): found for (group, _), found in fits.items()}
                offers.append(replace(offer, variant=one.variant, kind=kind))
    return replace(shown, offers=tuple(offers), kinds=kinds, verdicts=verdicts, annexes=some)
