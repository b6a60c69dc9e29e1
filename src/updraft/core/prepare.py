"""`prepare(observation, learned, policy) -> Snapshot`: what a decision is made about, from what was seen.

Pure, as `plan` is. Of what the sources said comes what is on sale: the clouds' offers for each class, in the
variants that waiting jobs and annexes want, each with the kind of its slots; the room that is to be kept
ready; and how fast machines may join. Whether jobs run on slots of those kinds is asked of a judge, who is
not pure: `to_learn` and `unjudged` say what is to be learned and asked, and the answers come back as
`Learned`. With that a recorded observation can be prepared again anywhere.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from updraft.core.annexes.progress import on_sale
from updraft.core.demand.headroom import spare_groups
from updraft.core.limits.pace import after_look
from updraft.core.model import JobGroup, Known, Learned, Observation, Snapshot, Source
from updraft.core.model.remembered import Observed
from updraft.core.settings import Policy
from updraft.core.slots import places
from updraft.core.slots.counts import bounded
from updraft.core.slots.offers import OfferCatalogue, told
from updraft.core.slots.variants import most_for, wanted
from updraft.core.sparing import policy_without, sold, warnings, without


def prepare(
    observation: Observation, learned: Learned, policy: Policy, catalogue: OfferCatalogue | None = None
) -> Snapshot:
    """The snapshot of this observation. No ad is read: what was learned of those of jobs and machines is.

    `catalogue` remembers what was made at the last look: with one it takes less time, and is the same.
    """
    seen, by = answers(observation), policy
    if learned.spared:
        seen, by = without(seen, learned.spared, learned.why), policy_without(policy, learned.spared)
    catalogue = catalogue or OfferCatalogue(told(learned.kinds))
    made = unjudged(seen, by, observation.templates, learned.templates, catalogue, apart=learned.apart)
    return finished(made, observation, learned)


def finished(made: Snapshot, observation: Observation, learned: Learned) -> Snapshot:
    """The snapshot of this observation, with what was learned of it."""
    known = made.kinds.keys() <= learned.kinds.keys()
    return replace(
        made if known else _without_unjudged(made, learned),
        verdicts=learned.verdicts,
        now=learned.at,
        pace=after_look(learned.pace, observation.collector, observation.ledger, learned.at),
        left_out=(*warnings(learned.spared, observation.annexes, learned.why), *observation.left_out),
    )


def answers(observation: Observation) -> Snapshot:
    """What the sources said, as a snapshot in which nothing is on sale."""
    said = {one.name: getattr(observation, one.name) for one in fields(Observed)}
    collector = bounded(observation.collector, observation.ledger.machines)
    return Snapshot(**{**said, "collector": collector, "left_out": ()})


def to_learn(observation: Observation, known: Mapping[str, str]) -> dict[str, str]:
    """The ads of kinds of which none is known yet, from slots of machines of our own, by kind.

    The first ad of a kind is kept: each that follows differs in what belongs to one machine. A slot that only
    claims to be ours teaches nothing: its ad could say anything.
    """
    new = observation.templates.keys() - known.keys()
    if not new or not isinstance(observation.collector, Known):
        return {}
    ours = {(r.cloud, r.id, r.launch_key) for r in observation.ledger.machines if r.ended_at is None}
    slots = observation.collector.value.slots
    kinds = {slot.kind for slot in slots if (slot.cloud, slot.instance_id, slot.launch_key) in ours}
    return {key: text for key, text in observation.templates.items() if key in kinds and key in new}


def waiting(seen: Snapshot) -> list[JobGroup]:
    """The groups of all schedds, by their last words."""
    return [group for source in seen.schedds.values() for group in _groups(source)]


def apart(seen: Snapshot, policy: Policy) -> bool:
    """Whether kinds have to be told apart by zone and market: somebody's requirements read those."""
    everyone = (*waiting(seen), *spare_groups(policy, seen.now))
    return places.read(policy, (group.ad for group in everyone))


def unjudged(
    seen: Snapshot,
    policy: Policy,
    shown: Mapping[str, str],
    learned: Mapping[str, str],
    catalogue: OfferCatalogue,
    *,
    apart: bool,
) -> Snapshot:
    """The answers with what is on sale, the kinds of slots, and the room to keep ready: all but verdicts.

    Ads of whole, empty slots, by kind: those `shown` are of anybody's machines, those `learned` of our own.
    `catalogue` makes kinds and offers, and remembers those of the last look.
    """
    templates = {**shown, **learned}
    items = [item for view in seen.clouds.values() for item in sold(view)]
    wants = on_sale(seen.annexes, wanted(waiting(seen), policy, most_for(len(items))), policy)
    there = places.Placed(seen.collector, templates, {})
    if apart:
        there = places.placed(seen.collector, seen.ledger.machines, templates)
    offers, kinds = catalogue.stock(policy, items, learned, apart=apart, wants=wants)
    slots = there.view.value.slots if isinstance(there.view, Known) else ()
    return replace(
        seen,
        collector=there.view,
        offers=offers,
        kinds={**catalogue.of_slots(slots, there.templates, there.bought), **kinds},
        spare=spare_groups(policy, seen.now),
    )


def _without_unjudged(made: Snapshot, learned: Learned) -> Snapshot:
    """The same without kinds that the judge was not asked about."""
    return replace(
        made,
        offers=tuple(one for one in made.offers if one.kind in learned.kinds),
        kinds={key: kind for key, kind in made.kinds.items() if key in learned.kinds},
    )


def _groups(source: Source[Any]) -> tuple[JobGroup, ...]:
    said = source if isinstance(source, Known) else source.last
    return () if said is None else said.value.groups
