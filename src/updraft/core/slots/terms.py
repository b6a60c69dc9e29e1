"""What the terms of jobs mean for machines: what a machine says of itself, and which jobs it takes.

The condition is written once, as the machine attribute `UpdraftTakes`. Every worker's START asks for it, the
planner counts on it in the ads that it imagines, and the jobs' own half of it (`requirements`) is what
transforms at the schedd add. It is short, since every slot's ad has it; it is one text for all plain
machines, what differs being attributes; and it begins with a test that is plain comparison, so that jobs
without terms cost the planner next to nothing.

`refused_terms` says why nothing on sale is what a job's terms ask for: the first of them that leaves nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from updraft.core.model import CloudOffer, Offer, Reason, Terms
from updraft.core.model.variants import PLAIN, Variant
from updraft.core.settings import WorkerClass

IMAGE = ("UpdraftImage", "VMAMI", "VMImageID", "VMImage", "VMLoc")
FLAVOR = ("UpdraftFlavor", "VMInstanceType")
NETWORK = ("UpdraftNetwork", "VMNetwork")
CLOUDS = ("UpdraftClouds", "TargetClouds")
LAYERS = ("UpdraftLayers", "VMAMIConfig")
MAX_PRICE, MAX_CENTS = "UpdraftMaxPrice", "VMMaximumPrice"
SPOT = "UpdraftSpot"
CPUS, MEMORY, DISK = "VMCPUCores", "VMMem", "VMStorage"
FETCHED = "VMUserData"
RESTRICTIVE = (
    *(*IMAGE, *FLAVOR, *NETWORK, *CLOUDS, *LAYERS),
    *(MAX_PRICE, MAX_CENTS, SPOT, CPUS, MEMORY, DISK, FETCHED),
)
"""Names in a job's ad that leave it fewer machines; the others say how machines come and go. Of several that
mean the same, the first that a job has counts."""

LABEL = "VMType"
"""The attribute of a machine that Cloud Scheduler's jobs ask for in their requirements."""

ANNEX = "AnnexName"
"""The attribute of a machine that names its annex, as condor_annex had it."""

TARGET_ANNEX, MAY_USE_ANNEX = "TargetAnnexName", "MayUseAWS"
"""Of a job: the only annex that will do, and whether any will; nothing of either is no objection."""

TAKES = "UpdraftTakes"
"""The attribute of a machine that is true for the jobs that it takes, as far as their terms go."""

OWN_REQUIREMENTS = "UpdraftOwnRequirements"
"""Where the requirements of a job are kept that a transform has given those of its terms."""

VERSION = 1
"""Of the condition: with another one, machines that were launched before are of an older generation."""

_GIB = 1024 * 1024  # KiB
_SHOWN = 5
_NOTHING = "^ *$"
# A sign that means something in a pattern stands for itself in brackets, and a backslash in no ad of ours.
_SIGNS = re.compile(r"[.+*?()\[\]{}|$]")


def says(
    offer: CloudOffer, image: str, label: str, variant: Variant = PLAIN
) -> Mapping[str, str | int | float | bool]:
    """The attributes of a machine that terms are held against: attribute to value.

    It was bought as `offer` (a price that isn't known isn't said) and boots `image`; `label` is its VMType
    where the variant has none. Class, cloud, image, flavor and market it says besides.
    """
    found: dict[str, str | int | float | bool] = {
        LABEL: variant.label or label,
        "UpdraftCpus": offer.resources.cpus,
        "UpdraftMemory": offer.resources.memory,
        "UpdraftDisk": offer.resources.disk,
        "UpdraftTakesImage": _pattern(offer.cloud, image, only=bool(variant.image)),
        "UpdraftTakesFlavor": _pattern(offer.cloud, offer.flavor),
        "UpdraftTakesNetwork": _pattern(offer.cloud, variant.network, only=bool(variant.network)),
        **bought(offer),
    }
    more = {
        "UpdraftVariant": variant.text,
        "UpdraftNetwork": variant.network,
        "UpdraftUser": variant.user,
        "UpdraftLayers": variant.layers,
    }
    return found | {name: value for name, value in more.items() if value} | annex_says(variant)


def annex_says(variant: Variant) -> dict[str, str | int | float | bool]:
    """By what HTCondor knows the machines of an annex (`condor_status -annex`, `condor_off -annex`)."""
    return {ANNEX: variant.annex, "IsAnnex": True} if variant.annex else {}


def bought(offer: CloudOffer) -> Mapping[str, str | int | float | bool]:
    """Of this what differs between machines of one kind, by the market and the time that they were bought."""
    found: dict[str, str | int | float | bool] = {"UpdraftSpot": offer.market == "spot"}
    return found if offer.price is None else {**found, "UpdraftPrice": float(offer.price)}


def takes(variant: Variant = PLAIN) -> str:
    """The expression of `UpdraftTakes` for a machine of this variant.

    A job with terms is taken where this machine is what it asks for. A machine made for an image, a network,
    layers or a user takes only the jobs that ask for that, and of that user.
    """
    terms = " && ".join(_conditions())
    only = list(_made_for(variant))
    if len(only) == bool(variant.user) + bool(variant.annex):
        terms = f"({_first(RESTRICTIVE)}) is undefined || ({terms})"
        return " && ".join([*only, f"({terms})"]) if only else terms
    return " && ".join([*only, terms])


def requirements() -> str:
    """The same as a job's requirement of machines, whatever terms it has."""
    return " && ".join(_turned(condition) for condition in _conditions())


def annex_requirement() -> str:
    """The requirement of a job that names an annex: others would take it."""
    return f"(MY.{TARGET_ANNEX} is undefined || TARGET.{ANNEX} == MY.{TARGET_ANNEX})"


def _conditions() -> Iterable[str]:
    """For each term what it asks of the machine in whose ad it is evaluated; true where a job has none."""
    for names, own in ((IMAGE, "Image"), (FLAVOR, "Flavor"), (NETWORK, "Network")):
        yield f'regexp(MY.UpdraftTakes{own}, {_first(names)} ?: "")'
    yield f'stringListMember(MY.UpdraftCloud, {_first(CLOUDS)} ?: MY.UpdraftCloud, ",")'
    yield f'stringListSubsetMatch({_first(LAYERS)} ?: "", MY.UpdraftLayers ?: "", ",")'
    yield f"(TARGET.{MAX_PRICE} is undefined || MY.UpdraftPrice <= real(TARGET.{MAX_PRICE}))"
    # Cloud Scheduler counts in cents, and 0 is no price.
    cents = f"real(TARGET.{MAX_CENTS} ?: 0)"
    yield f"({cents} == 0 || MY.UpdraftPrice <= {cents} / 100)"
    yield f"(TARGET.{SPOT} ?: MY.UpdraftSpot) =?= MY.UpdraftSpot"
    yield f"int(TARGET.{CPUS} ?: 0) <= MY.UpdraftCpus"
    yield f"int(TARGET.{MEMORY} ?: 0) <= MY.UpdraftMemory"
    yield f"int(TARGET.{DISK} ?: 0) * {_GIB} <= MY.UpdraftDisk"
    yield f'(TARGET.{FETCHED} ?: "") =?= ""'


def _made_for(variant: Variant) -> Iterable[str]:
    if variant.user:
        yield "TARGET.Owner =?= MY.UpdraftUser"
    if variant.annex:
        # A job that names an annex wants that one; one that says no to annexes gets none.
        named, may = f"TARGET.{TARGET_ANNEX}", f"TARGET.{MAY_USE_ANNEX}"
        yield f"({named} == MY.{ANNEX} || {named} is undefined && {may} isnt false)"
    for names, made in ((IMAGE, variant.image), (NETWORK, variant.network), (LAYERS, variant.layers)):
        if made:
            yield f"({_first(names)}) isnt undefined"
    if variant.layers:
        yield f'stringListSubsetMatch(MY.UpdraftLayers, {_first(LAYERS)}, ",")'


def _first(names: Iterable[str]) -> str:
    return " ?: ".join(f"TARGET.{name}" for name in names)


def _turned(condition: str) -> str:
    """A condition of the machine's ad as one of the job's."""
    return re.sub(r"\b(MY|TARGET)\.", lambda found: "TARGET." if found[1] == "MY" else "MY.", condition)


def _pattern(cloud: str, own: str, *, only: bool = False) -> str:
    """The pattern of a job's choice for a machine on this cloud that has `own` (or nothing to choose).

    A choice is one value, or `cloud:value` pairs with `default` for every cloud that isn't named. Unless the
    machine has it `only` for those who ask, no choice will do as well.
    """
    found = [] if only else [_NOTHING]
    if own:
        here, value = (_SIGNS.sub(lambda sign: f"[{sign[0]}]", text) for text in (cloud, own))
        found += [
            f"^ *{value} *$",
            f"(^|,) *{here}:{value} *(,|$)",
            f"^(?!.*(^|,) *{here}:).*(^|, *)default:{value} *(,|$)",
        ]
    return "|".join(found)


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
            _lowest_price,
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


def _lowest_price(left: Sold) -> str:
    prices = [offer.price for offer, _ in left if offer.price is not None]
    return f"the cheapest that would do costs {min(prices):.4g}" if prices else "no price is known"


def _by_cloud(asked: Mapping[str, str]) -> str:
    return _or([f"{value} (on {cloud})" if cloud else value for cloud, value in asked.items()])


def _or(names: Sequence[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return " or ".join([*names[:_SHOWN], *more])
