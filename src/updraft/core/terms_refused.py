"""Why nothing on sale is what a job's terms ask for: the first of them that leaves nothing, in words."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from updraft.core.model import Offer, Reason, Terms
from updraft.core.settings import WorkerClass

_SHOWN = 5
_GIB = 1024 * 1024  # KiB

Sold = Sequence[tuple[Offer, WorkerClass]]


@dataclass(frozen=True, slots=True)
class _Ask:
    """One term: what is said of it, which offers fit it, and what is on sale `instead`."""

    reason: Reason
    fits: Callable[[Offer, WorkerClass], bool]
    instead: Callable[[Sold], str]


def refused_terms(terms: Terms, classes: Mapping[str, WorkerClass], offers: Iterable[Offer]) -> Reason | None:
    """The first of the terms that leaves none of these offers; None where some is left, or none was there.

    What a class allows counts as on sale, whether or not a machine made so is at the moment.
    """
    left = [(offer, classes[offer.worker_class]) for offer in offers if offer.worker_class in classes]
    if not left:
        return None
    for ask in (*_of_the_place(terms), *_of_the_class(terms), *_of_the_machine(terms)):
        fitting = [(offer, worker) for offer, worker in left if ask.fits(offer, worker)]
        if not fitting:
            return Reason(ask.reason.code, f"{ask.reason.text}; {ask.instead(left)}")
        left = fitting
    return None


def _of_the_place(terms: Terms) -> Iterator[_Ask]:
    if terms.clouds:
        yield _Ask(
            Reason("term-cloud", f"its terms ask for the cloud {_or(terms.clouds)}"),
            lambda offer, worker: offer.cloud in terms.clouds,
            lambda left: f"there is {_clouds(left)}",
        )
    if terms.flavors:
        yield _Ask(
            Reason("term-flavor", f"its terms ask for the flavor {_by_cloud(terms.flavors)}"),
            lambda offer, worker: _named(terms.flavors, offer.cloud) in ("", offer.flavor),
            lambda left: f"it isn't on sale on {_clouds(left)}",
        )


def _of_the_class(terms: Terms) -> Iterator[_Ask]:
    if terms.images:
        yield _Ask(
            Reason("term-image", f"its terms ask for the image {_by_cloud(terms.images)}"),
            lambda offer, worker: _may(
                _named(terms.images, offer.cloud), worker.images_allowed, worker.images.get(offer.cloud)
            ),
            lambda left: f"no class allows it on {_clouds(left)}",
        )
    if terms.networks:
        yield _Ask(
            Reason("term-network", f"its terms ask for the network {_by_cloud(terms.networks)}"),
            lambda offer, worker: _may(_named(terms.networks, offer.cloud), worker.networks_allowed),
            lambda left: f"no class allows it on {_clouds(left)}",
        )
    if terms.layers:
        yield _Ask(
            Reason("term-layer", f"its terms ask for the layers {', '.join(terms.layers[:_SHOWN])}"),
            lambda offer, worker: set(terms.layers) <= set(worker.offered_layers),
            lambda left: "no class offers them all",
        )
    if terms.label:
        yield _Ask(
            Reason("term-label", f"its terms ask for the VMType {terms.label}"),
            lambda offer, worker: _may(terms.label, worker.vm_types, worker.name) or _says_vmtype(worker),
            lambda left: "no class has that name or allows it",
        )


def _of_the_machine(terms: Terms) -> Iterator[_Ask]:
    if terms.spot is not None:
        yield _Ask(
            Reason("term-market", f"its terms ask for {'spot' if terms.spot else 'on-demand'} machines"),
            lambda offer, worker: (offer.market == "spot") == terms.spot,
            lambda left: "no class that would do buys them",
        )
    if terms.cpus or terms.memory or terms.disk:
        yield _Ask(
            Reason(
                "term-size",
                f"its terms ask for at least {terms.cpus} cores, {terms.memory} MiB of memory and "
                f"{terms.disk // _GIB} GiB of disk",
            ),
            lambda offer, worker: (
                offer.resources.cpus >= terms.cpus
                and offer.resources.memory >= terms.memory
                and offer.resources.disk >= terms.disk
            ),
            lambda left: "no machine on sale is as large",
        )
    if terms.max_price is not None:
        most = terms.max_price
        yield _Ask(
            Reason("term-price", f"its terms ask for a price of {most:.4g} per hour at most"),
            lambda offer, worker: offer.price is not None and offer.price <= most,
            _cheapest,
        )


def _named(by_cloud: Mapping[str, str], cloud: str) -> str | None:
    """What is asked for on this cloud; None where only others are named."""
    return by_cloud.get(cloud, by_cloud.get(""))


def _may(name: str | None, patterns: Iterable[str], own: str | None = None) -> bool:
    return name is not None and (name == own or any(fnmatchcase(name, pattern) for pattern in patterns))


def _says_vmtype(worker: WorkerClass) -> bool:
    """Whether the site has set what machines of this class call themselves: nobody compares it here."""
    return any(name.lower() == "vmtype" for name in worker.attributes)


def _clouds(left: Sold) -> str:
    return _or(sorted({offer.cloud for offer, _ in left}))


def _cheapest(left: Sold) -> str:
    prices = [offer.price for offer, _ in left if offer.price is not None]
    return f"the cheapest that would do costs {min(prices):.4g}" if prices else "no price is known"


def _by_cloud(asked: Mapping[str, str]) -> str:
    return _or([f"{value} (on {cloud})" if cloud else value for cloud, value in asked.items()])


def _or(names: Sequence[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return " or ".join([*names[:_SHOWN], *more])
