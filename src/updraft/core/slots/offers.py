"""What can be bought, as the planner reads it: the clouds' offers × the worker classes, with their kinds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from updraft.core.model import PLAIN, CloudOffer, Kind, Offer, Slot, Variant
from updraft.core.settings import Policy, WorkerClass
from updraft.core.slots import catalogue
from updraft.core.slots.choice import chosen
from updraft.core.slots.kinds import apart_key, kind_key
from updraft.core.slots.variants import Wants

KindKey = Callable[[str, str, str, str, str], str]
Imagine = Callable[[WorkerClass, CloudOffer, str, str, str, Variant], Kind]
Learned = Callable[[str, str, CloudOffer | None, int], Kind]
_REMEMBERED = 50_000
_NOTHING: Wants = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Kinds:
    """How kinds are made.

    `key` from (class, generation, cloud, flavor, variant's text); `imagine` from (class, offer, image, pool,
    key, variant); `learned` from (key, a real ad's text, the offer if there is one, how many such slots a
    machine brings).
    """

    key: KindKey
    imagine: Imagine
    learned: Learned


CATALOGUE = Kinds(kind_key, catalogue.imagine, catalogue.learned)
"""As the catalogue imagines them, and as real ads show them."""


def told(kinds: Mapping[str, Kind]) -> Kinds:
    """Kinds that are looked up by their keys, where they were made before; others can't be had (KeyError)."""
    return Kinds(
        kind_key,
        lambda _class, _offer, _image, _pool, key, _variant: kinds[key],
        lambda key, _text, _offer, _count: kinds[key],
    )


class OfferCatalogue:
    """Offers and kinds, made again only where what they are made of has changed."""

    def __init__(self, kinds: Kinds = CATALOGUE) -> None:
        self._make = kinds
        self._made: dict[str, tuple[object, Kind | None]] = {}
        self._stocked: tuple[object, tuple[Offer, ...], dict[str, Kind]] | None = None
        self._there: tuple[object, object, object, dict[str, Kind]] | None = None

    def stock(
        self,
        policy: Policy,
        sold: Iterable[CloudOffer],
        templates: Mapping[str, str],
        *,
        apart: bool = False,
        wants: Wants = _NOTHING,
    ) -> tuple[tuple[Offer, ...], dict[str, Kind]]:
        """Every offer that some class can take, and the kinds of their slots: one for all zones and markets,
        or with `apart` one for each of them.

        Beside plain machines there are the variants that are wanted; of a class whose machines are each made
        for one user there are only those.
        """
        # From one look to the next hardly anything of it changes: comparing is much cheaper than making.
        basis = (policy, tuple(sold), dict(templates), apart, wants)
        if self._stocked is None or self._stocked[0] != basis:
            if len(self._made) > _REMEMBERED:
                self._made.clear()
            self._stocked = (basis, *self._stock(policy, basis[1], templates, apart, wants))
        _, offers, kinds = self._stocked
        return offers, dict(kinds)

    def _stock(
        self,
        policy: Policy,
        sold: Iterable[CloudOffer],
        templates: Mapping[str, str],
        apart: bool,
        wants: Wants,
    ) -> tuple[tuple[Offer, ...], dict[str, Kind]]:
        offers: list[Offer] = []
        kinds: dict[str, Kind] = {}
        for item in sold:
            for worker in policy.classes.values():
                if not _takes(worker, item):
                    continue
                for variant in _variants(worker, item, wants):
                    kind = self._kind(worker, item, variant, policy.pool, templates, apart)
                    if kind is not None:
                        kinds[kind.key] = kind
                        offers.append(_offer(worker, item, variant, kind))
        return tuple(offers), kinds

    def of_slots(
        self,
        slots: Iterable[Slot],
        templates: Mapping[str, str],
        bought: Mapping[str, CloudOffer] | None = None,
    ) -> dict[str, Kind]:
        """The kinds of slots that are there, those of older generations and of the site's machines too.

        `bought` is what the machines of a kind were bought as, where that tells its zone and market.
        """
        bought, last = bought or {}, self._there
        if last is not None and last[0] is slots and last[1:3] == (templates, bought):
            return dict(last[3])
        found: dict[str, Kind] = {}
        for slot in slots:
            text = templates.get(slot.kind)
            if text is None or slot.kind in found:
                continue
            item = bought.get(slot.kind)
            kind = self._once(slot.kind, text, partial(self._make.learned, slot.kind, text, item, 1))
            if kind is not None:
                found[slot.kind] = kind
        if isinstance(slots, tuple):
            self._there = (slots, dict(templates), dict(bought), found)
        return dict(found)

    def _kind(
        self,
        worker: WorkerClass,
        item: CloudOffer,
        variant: Variant,
        pool: str,
        templates: Mapping[str, str],
        apart: bool,
    ) -> Kind | None:
        key = self._make.key(worker.name, worker.generation, item.cloud, item.flavor, variant.text)
        image = _image(worker, item, variant)
        text = templates.get(key)
        if apart:
            key = apart_key(key, item.zone, item.market)
        if text is not None:
            count = worker.static_slots or 1
            shown = (text, count, item.price if apart else None)
            kind = self._once(f"offer {key}", shown, partial(self._make.learned, key, text, item, count))
            if kind is not None:
                return kind
        basis = (item.resources, item.arch, image, worker, item.price if apart else None)
        return self._once(
            f"imagined {key}", basis, partial(self._make.imagine, worker, item, image, pool, key, variant)
        )

    def _once(self, key: str, basis: object, make: Callable[[], Kind]) -> Kind | None:
        known = self._made.get(key)
        if known is None or known[0] != basis:
            try:
                made = make()
            except Exception:
                # An ad that can't be read is what anybody may have put into the collector: there is no kind
                # for it, so nothing is matched to it, and the look goes on.
                made = None
            known = (basis, made)
            self._made[key] = known
        return known[1]


def for_some_class(sold: Iterable[CloudOffer], policy: Policy) -> Iterator[CloudOffer]:
    """The offers of clouds that some class may take."""
    return (item for item in sold if any(_takes(worker, item) for worker in policy.classes.values()))


def _takes(worker: WorkerClass, item: CloudOffer) -> bool:
    return (
        item.cloud in worker.clouds and item.market in worker.markets and chosen(item.flavor, worker.flavors)
    )


def _variants(worker: WorkerClass, item: CloudOffer, wants: Wants) -> Iterator[Variant]:
    """The variants of a class that are on sale there: plain ones first."""
    if not worker.owner_only:
        yield PLAIN
    for want in wants.get(worker.name, ()):
        if item.cloud in want.clouds:
            yield want.variant


def _image(worker: WorkerClass, item: CloudOffer, variant: Variant) -> str:
    return variant.image or worker.images.get(item.cloud, "")


def _offer(worker: WorkerClass, item: CloudOffer, variant: Variant, kind: Kind) -> Offer:
    return Offer(
        worker_class=worker.name,
        cloud=item.cloud,
        zone=item.zone,
        flavor=item.flavor,
        market=item.market,
        image=_image(worker, item, variant),
        generation=worker.generation,
        resources=item.resources,
        kind=kind.key,
        price=item.price,
        left=item.left,
        variant=variant,
    )
