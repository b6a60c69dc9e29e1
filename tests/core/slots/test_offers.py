"""What is on sale, and the kinds of its slots."""

from dataclasses import replace

from tests.rigs.pools.virtualpool import KINDS
from tests.rigs.rig import policy
from updraft.core.model import CloudOffer, Resources
from updraft.core.slots.offers import OfferCatalogue


def test_the_catalogue_is_made_anew_only_when_something_of_it_changed() -> None:
    made: list[str] = []

    def key(*words: str) -> str:
        made.append("/".join(words))
        return KINDS.key(*words)

    catalogue = OfferCatalogue(replace(KINDS, key=key))
    sold = [
        CloudOffer("c1", "z1", name, "on-demand", Resources(2, 4096, 1 << 20), 0.1) for name in ("s", "m")
    ]
    templates: dict[str, str] = {}
    first = catalogue.stock(policy(), sold, templates)
    count = len(made)
    assert catalogue.stock(policy(), list(sold), dict(templates)) == first
    assert len(made) == count
    dearer = [replace(item, price=0.2) for item in sold]
    assert [offer.price for offer in catalogue.stock(policy(), dearer, templates)[0]] == [0.2, 0.2]
    assert len(made) == 2 * count
    # What is learned goes into the same mapping: a change of it is seen.
    one = next(iter(first[1].values()))
    templates[one.key] = one.ad
    assert catalogue.stock(policy(), dearer, templates)[1][one.key].learned
