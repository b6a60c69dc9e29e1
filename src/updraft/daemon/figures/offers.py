"""What each cloud sells that the pool's classes take, as the page shows it: written down when it changes."""

from updraft.core.model import Known, Offer, Snapshot
from updraft.documents import Row
from updraft.ledger import Ledger

EVERY = 600.0
"""How often it is written down all the same, in seconds: what classes take of it may have changed."""
MOST = 500
"""How many offers of a cloud are written down: the cheapest cores."""


class OffersKeeper:
    """Keeps, under "offers CLOUD", what this cloud sold at the daemon's last look."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: dict[str, tuple[float, object]] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Write down what has changed. Of a cloud that doesn't say its offers the last ones stay."""
        for name, view in snapshot.clouds.items():
            if not isinstance(view.offers, Known):
                continue
            at, sold = self._kept.get(name, (float("-inf"), None))
            if sold != view.offers.value or abs(snapshot.now - at) >= EVERY:
                self._kept[name] = snapshot.now, view.offers.value
                doc = {"at": view.offers.at, "rows": rows_of(snapshot, name)}
                self._ledger.note(f"offers {name}", doc, snapshot.now)


def rows_of(snapshot: Snapshot, cloud: str) -> list[Row]:
    """Each flavor, zone and market that some class takes of this cloud, the cheapest core first."""
    found: dict[tuple[str, str, str], tuple[Offer, set[str]]] = {}
    for offer in snapshot.offers:
        if offer.cloud == cloud:
            place = (offer.flavor, offer.zone, offer.market)
            found.setdefault(place, (offer, set()))[1].add(offer.worker_class)
    cheapest = sorted(found.items(), key=lambda one: (_per_core(one[1][0]), one[0]))
    return [
        {
            "flavor": offer.flavor,
            "zone": offer.zone,
            "market": offer.market,
            "price": offer.price,
            "left": offer.left,
            "cpus": offer.resources.cpus,
            "memory": offer.resources.memory,
            "gpus": offer.resources.gpus,
            "classes": sorted(classes),
        }
        for _, (offer, classes) in cheapest[:MOST]
    ]


def _per_core(offer: Offer) -> float:
    return float("inf") if offer.price is None else offer.price / max(1, offer.resources.cpus)
