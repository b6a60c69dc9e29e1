"""What the terms of jobs mean for machines: what a machine says of itself, and which jobs it takes.

The condition is written once, as the machine attribute `UpdraftTakes`. Every worker's START asks for it, the
planner counts on it in the ads that it imagines, and the jobs' own half of it (`requirements`) is what
transforms at the schedd add. It is short, since every slot's ad has it; it is one text for all plain
machines, what differs being attributes; and it begins with a test that is plain comparison, so that jobs
without terms cost the planner next to nothing.
"""

import re
from collections.abc import Iterable, Mapping

from updraft.core.model import CloudOffer
from updraft.core.model.variants import PLAIN, Variant

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
_NOTHING = "^ *$"
# A sign that means something in a pattern stands for itself in brackets, and a backslash in no ad of ours.
_SIGNS = re.compile(r"[.+*?()\[\]{}|$]")


def says(
    offer: CloudOffer, image: str, label: str, variant: Variant = PLAIN
) -> Mapping[str, str | int | float | bool]:
    """What a machine says of itself that terms are held against: attribute to value.

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
    """What a job that names an annex requires of machines: others would take it."""
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
    """What a job's choice must look like for a machine on this cloud that has `own` (or nothing to choose).

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
