"""Which variants of which class may be bought now, for what waiting jobs say of their machines.

A class allows what its configuration names, and nothing else is ever made of a job's words. However many
names a user thinks of, only so many variants are on sale at a time: for each user, and in all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import JobGroup, Offer, Reason, Terms
from updraft.core.model.variants import PLAIN, Variant
from updraft.core.settings import Policy, WorkerClass
from updraft.core.sharing.submitters import user_of

MOST_EACH = 8
"""Variants that are on sale for one user at a time."""
_LOOKED_AT = 100  # of a user: what is asked for in more ways than that isn't read to the end
FEWEST, MOST = 16, 256
_OFFERS = 8000  # with variants; so many are looked through at each decision
LONGEST = 255  # of a variant's text: what clouds take as the value of a tag

TOO_MANY = Reason(
    "too-many-variants",
    "too many kinds of machines are asked for: those on sale at a time are for jobs that have waited longer, "
    f"and no more than {MOST_EACH} are for one user",
)


@dataclass(frozen=True, slots=True)
class Want:
    """A variant of a class that some jobs want, and the clouds on which they want it."""

    variant: Variant
    clouds: frozenset[str]


Ask = tuple[object, ...]
Wants = Mapping[str, tuple[Want, ...]]
"""By class, in a stable order; a class of which only plain machines are wanted isn't in it."""


def most_for(sold: int) -> int:
    """How many variants may be on sale in all, where so many offers are sold."""
    return max(FEWEST, min(MOST, _OFFERS // max(1, sold)))


def wanted(groups: Iterable[JobGroup], policy: Policy, most: int = MOST) -> Wants:
    """The variants that these groups want, at most `most` in all and `MOST_EACH` for a user.

    Who has waited longest comes first, each user with one variant, then each with another.
    """
    private = tuple(worker for worker in policy.classes.values() if worker.owner_only)
    asking = [group for group in groups if group.idle > 0 and (private or constructive(group.terms))]
    if not asking:
        return {}
    asking.sort(key=lambda group: (group.oldest, group.key))
    turns: dict[str, dict[tuple[str, Variant], set[str]]] = {}
    looked: dict[str, set[Ask]] = {}
    for group in asking:
        mine, seen = turns.setdefault(user_of(group), {}), looked.setdefault(user_of(group), set())
        if len(mine) >= MOST_EACH or len(seen) >= _LOOKED_AT or (ask := _ask(group)) in seen:
            continue
        seen.add(ask)
        for worker in policy.classes.values():
            if worker.owner_only or constructive(group.terms):
                for made, clouds in choices(group, worker).items():
                    if made != PLAIN and ((worker.name, made) in mine or len(mine) < MOST_EACH):
                        mine.setdefault((worker.name, made), set()).update(clouds)
    chosen = _by_turns([tuple(mine) for mine in turns.values()], most)
    found: dict[str, list[Want]] = {}
    for name, made in sorted(chosen):
        where = frozenset(cloud for mine in turns.values() for cloud in mine.get((name, made), ()))
        found.setdefault(name, []).append(Want(made, where))
    return {name: tuple(some) for name, some in found.items()}


def _by_turns(queues: Sequence[Sequence[tuple[str, Variant]]], most: int) -> set[tuple[str, Variant]]:
    """The first of each queue, then the second of each, until there are `most` of them."""
    found: set[tuple[str, Variant]] = set()
    for turn in range(MOST_EACH):
        for queue in queues:
            if turn < len(queue) and len(found) < most:
                found.add(queue[turn])
    return found


def constructive(terms: Terms) -> bool:
    """Whether these terms can make a machine differ from the plain one of a class that isn't one user's."""
    return bool(terms.images or terms.networks or terms.layers or terms.label or terms.keep_alive is not None)


def _ask(group: JobGroup) -> Ask:
    """All that `choices` reads of a group."""
    terms = group.terms
    named = (tuple(sorted(terms.images.items())), tuple(sorted(terms.networks.items())))
    return (
        group.owner,
        *named,
        terms.clouds,
        terms.layers,
        terms.label,
        terms.keep_alive,
        bool(terms.faults),
    )


def choices(group: JobGroup, worker: WorkerClass) -> dict[Variant, tuple[str, ...]]:
    """The machines of a class that may be made for a group, and on which clouds; none where it has faults.

    A cloud on which the class allows what the group asks for, and nothing that differs, is with `PLAIN`.
    """
    found: dict[Variant, tuple[str, ...]] = {}
    terms = group.terms
    if terms.faults:
        return found
    everywhere = _everywhere(terms, worker, group.owner)
    if everywhere is None:
        return found
    for cloud in worker.clouds:
        if terms.clouds and cloud not in terms.clouds:
            continue
        image, network = _named(terms.images, cloud), _named(terms.networks, cloud)
        if image == worker.images.get(cloud):
            image = ""
        if _allowed(image, worker.images_allowed) and _allowed(network, worker.networks_allowed):
            made = replace(everywhere, image=image, network=network)
            if len(made.text) <= LONGEST:
                found[made] = (*found.get(made, ()), cloud)
    return found


def _everywhere(terms: Terms, worker: WorkerClass, owner: str) -> Variant | None:
    """What of a variant is the same on all clouds; None where the class doesn't allow it."""
    if not set(terms.layers) <= set(worker.offered_layers):
        return None
    label = "" if _has_label(worker, terms.label) else terms.label
    if not _allowed(label, worker.vm_types):
        return None
    keep = _kept(terms, worker)
    layers = ",".join(name for name in worker.offered_layers if name in terms.layers)
    user = owner if worker.owner_only else ""
    return Variant(label=label, user=user, layers=layers, keep_alive=keep)


def _kept(terms: Terms, worker: WorkerClass) -> str:
    """How long the machine may idle, where that isn't as long as the class's; whole seconds."""
    if terms.keep_alive is None or not terms.keep_alive >= 0:
        return ""
    seconds = int(min(terms.keep_alive, worker.keep_alive_max))
    return "" if seconds == int(worker.idle_limit) else str(seconds)


def _has_label(worker: WorkerClass, label: str) -> bool:
    """Whether its plain machines call themselves so, or the site has set what they call themselves."""
    return label in ("", worker.name) or any(name.lower() == "vmtype" for name in worker.attributes)


def _named(by_cloud: Mapping[str, str], cloud: str) -> str:
    return by_cloud.get(cloud) or by_cloud.get("", "")


def _allowed(name: str, patterns: Iterable[str]) -> bool:
    return not name or any(fnmatchcase(name, pattern) for pattern in patterns)


# -------------------------------------------------------------------------------------- what was bought


def refusal(made: Variant, worker: WorkerClass, image: str) -> Reason | None:
    """Why no machine of this variant, with this image, may be launched; None where one may.

    What is on sale was allowed when it was put there. This looks again, at the last moment: it may be of a
    snapshot, a tag or a ledger that somebody has written to.
    """
    if made.unreadable:
        return _no(f"{made.text[:80]!r} is no variant of a class")
    if made.image and image != made.image:
        return _no(f"its variant doesn't have the image {image[:80]!r}")
    named = (
        ("image", made.image, worker.images_allowed),
        ("network", made.network, worker.networks_allowed),
        ("VMType", made.label, worker.vm_types),
    )
    for what, name, patterns in named:
        if not _allowed(name, patterns):
            return _no(f"class {worker.name} doesn't allow the {what} {name[:80]!r}")
    unknown = set(made.layers.split(",") if made.layers else ()) - set(worker.offered_layers)
    if unknown:
        return _no(f"class {worker.name} offers no layer {min(unknown)[:80]!r}")
    if made.groups and not made.annex:
        return _no("only annexes have security groups of their own")
    if bool(made.user) != worker.owner_only and not (made.annex and made.user):
        whose = "each for one user only" if worker.owner_only else "for all users"
        return _no(f"class {worker.name} has machines {whose}, and this isn't one")
    return None


def _no(text: str) -> Reason:
    return Reason("not-allowed", text)


def idle_limit(worker: WorkerClass, made: Variant) -> float:
    """How long a machine of this variant may be without a claim; the class's, where nothing else is said."""
    if not (made.keep_alive.isascii() and made.keep_alive.isdecimal()):
        return worker.idle_limit
    limit = float(made.keep_alive[:12])
    return limit if made.annex else min(limit, worker.keep_alive_max)


# --------------------------------------------------------------------------------------- what is bought


def kept_as_asked(
    table: VerdictTable, groups: Sequence[JobGroup], offers: Sequence[Offer], policy: Policy
) -> VerdictTable:
    """The table without the offers that keep machines for another time than a group asks for.

    A machine that is there is room for all of them; one that is bought is bought as its jobs want it, where
    it can be had so.
    """
    kept = {offer.kind: offer.variant.keep_alive for offer in offers if offer.variant.keep_alive}
    if not kept:
        return table
    times = np.array([kept.get(name, "") for name in table.kinds])
    on_sale = {"", *kept.values()}
    asked: dict[frozenset[str], npt.NDArray[np.bool_]] = {}
    copies = table.copies.copy()
    for group in groups:
        mine = frozenset(_kept(group.terms, worker) for worker in policy.classes.values()) & on_sale
        if mine not in asked:
            asked[mine] = np.isin(times, sorted(mine))
        row, as_asked = copies[table.group_at[group.key]], asked[mine]
        if (row[as_asked] > 0).any():
            row[~as_asked] = np.minimum(row[~as_asked], 0)
    return replace(table, copies=copies)


def not_on_sale(
    groups: Iterable[JobGroup], policy: Policy, offers: Iterable[Offer]
) -> dict[str, tuple[Reason, ...]]:
    """Why none is on sale now for groups that a class would have machines made for, by their keys."""
    private = any(worker.owner_only for worker in policy.classes.values())
    asking = [group for group in groups if private or constructive(group.terms)]
    if not asking:
        return {}
    on_sale = {(offer.worker_class, offer.variant) for offer in offers}
    looked: dict[str, dict[Ask, bool]] = {}
    found: dict[str, tuple[Reason, ...]] = {}
    for group in asking:
        ask, seen = _ask(group), looked.setdefault(user_of(group), {})
        if ask not in seen and len(seen) < _LOOKED_AT:
            mine = {(name, made) for name, one in policy.classes.items() for made in choices(group, one)}
            seen[ask] = bool(mine) and on_sale.isdisjoint(mine)
        if seen.get(ask, True):
            found[group.key] = (TOO_MANY,)
    return found
