"""What is said to jobs whose terms nothing on sale meets, and that nothing is bought for them."""

from dataclasses import replace

import pytest

from tests.rigs.snapshots import group, policy, snapshot, worker
from updraft.core.model import NO_TERMS, Offer, Reason, Resources, Terms
from updraft.core.plan import plan
from updraft.core.reasons import REMEDIES
from updraft.core.slots.terms import refused_terms

CLASS = replace(
    worker(),
    images={"c1": "alma9", "c2": "alma9"},
    images_allowed=("alma*", "sl7"),
    networks_allowed=("lab",),
    vm_types=("atlas-*",),
    offered_layers=("hep",),
)
GIB = 1024 * 1024


def offer(cloud: str, flavor: str, price: float | None, market: str = "on-demand") -> Offer:
    size = Resources(4, 8192, 100 * GIB)
    return Offer(CLASS.name, cloud, "z", flavor, market, "alma9", "g1", size, f"{cloud}/{flavor}", price)


OFFERS = (offer("c1", "m1", 0.2), offer("c2", "m1", 0.1), offer("c2", "big", None))


@pytest.mark.parametrize(
    ("terms", "code", "says"),
    [
        (
            Terms(clouds=("c2", "c9"), max_price=0.1, images={"": "sl7"}, label="atlas-1", layers=("hep",)),
            "",
            "",
        ),
        (Terms(networks={"c1": "lab"}, flavors={"c1": "m1"}, spot=False, cpus=4), "", ""),
        (Terms(label=CLASS.name), "", ""),
        (Terms(clouds=("c9",)), "term-cloud", "the cloud c9; there is c1 or c2"),
        (Terms(flavors={"": "tiny"}), "term-flavor", "the flavor tiny; it isn't on sale on c1 or c2"),
        (Terms(clouds=("c1",), flavors={"": "big"}), "term-flavor", "it isn't on sale on c1"),
        (Terms(images={"c1": "sl6"}), "term-image", "the image sl6 (on c1); no class allows it on c1 or c2"),
        (Terms(networks={"": "dmz"}), "term-network", "the network dmz"),
        (Terms(layers=("hep", "gpu")), "term-layer", "the layers hep, gpu; no class offers them all"),
        (Terms(label="cms"), "term-label", "the VMType cms"),
        (Terms(spot=True), "term-market", "spot machines"),
        (Terms(memory=8193), "term-size", "8193 MiB of memory"),
        (Terms(max_price=0.05), "term-price", "0.05 per hour at most; the cheapest that would do costs 0.1"),
        (Terms(max_price=9.0, flavors={"": "big"}), "term-price", "no price is known"),
    ],
)
def test_the_first_term_that_leaves_nothing_is_named(terms: Terms, code: str, says: str) -> None:
    reason = refused_terms(terms, {CLASS.name: CLASS}, OFFERS)
    if not code:
        assert reason is None
        return
    assert reason is not None
    assert reason.code == code
    assert says in reason.text
    assert code in REMEDIES


def test_where_nothing_is_on_sale_the_terms_are_not_to_blame() -> None:
    assert refused_terms(Terms(clouds=("c9",)), {CLASS.name: CLASS}, ()) is None


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        (Terms(faults=(Reason("term-refused", "+VMLoc has an address"),)), "term-refused"),
        (Terms(clouds=("nowhere",)), "term-cloud"),
    ],
)
def test_nothing_is_bought_for_them_and_their_outlook_says_why(terms: Terms, code: str) -> None:
    plain = group("g", 5)
    bought = plan(snapshot(groups=[plain]), policy())
    assert any(outlook.new for outlook in bought.groups)
    asking = replace(plain, terms=terms)
    seen = snapshot(groups=[asking])
    if not terms.faults:  # START refuses what the terms don't fit
        seen = replace(seen, verdicts={key: replace(one, copies=0) for key, one in seen.verdicts.items()})
    made = plan(seen, policy())
    assert made.actions == ()
    (outlook,) = made.groups
    assert outlook.unmet == 5
    assert outlook.held_back[0].code == code
    assert plain.terms == NO_TERMS
