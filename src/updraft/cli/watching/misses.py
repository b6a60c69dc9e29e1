"""What each offer has against a job: the nearest miss first, and those that lack the same in one row."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from updraft.cli.output import Column, clock, count, table
from updraft.watching.documents import Document

if TYPE_CHECKING:
    from updraft.core.model import JobGroup, Offer, Snapshot

NAMES_SHOWN = 3
_TOO_BIG = "too-big"
_REQUEST = re.compile(r"\bRequest(Cpus|Memory|Disk|GPUs)\b", re.IGNORECASE)
_FACTS = re.compile(r": (?:the (?:slot|job) (?:has|asks) |is not true|which is ).*", re.DOTALL)
_NUMBERS = re.compile(r"\d+")


def offer_documents(
    group: "JobGroup", snapshot: "Snapshot", rests: Sequence[Mapping[str, Any]]
) -> list[Document]:
    """Every offer with the reason why it can or can't run the group: those that can, then the nearest miss.

    Nearest is what fails the fewest clauses, and then what has most of the quantities asked for.
    """

    def nearness(offer: "Offer") -> tuple[bool, int, float]:
        verdict = snapshot.verdicts.get((group.key, offer.kind))
        fails = () if verdict is None else verdict.reasons
        can = verdict is not None and verdict.copies > 0
        return not can, len(fails), offer.resources.shortfall(group.request)

    return [_offer_document(group, offer, snapshot, rests) for offer in sorted(snapshot.offers, key=nearness)]


def _offer_document(
    group: "JobGroup", offer: Any, snapshot: "Snapshot", rests: Sequence[Mapping[str, Any]]
) -> Document:
    from updraft.core.machines.cooldowns import image_key

    verdict = snapshot.verdicts.get((group.key, offer.kind))
    keys = {
        "offer": f"{offer.cloud}/{offer.zone}/{offer.flavor}/{offer.market}",
        "image": image_key(offer.worker_class, offer.image, offer.cloud, offer.variant),
        "cloud": offer.cloud,
    }
    return {
        "offer": offer.key,
        "price": offer.price,
        "holds": None if verdict is None or not verdict.decided else verdict.copies,
        "fails": [] if verdict is None else [asdict(reason) for reason in verdict.reasons],
        "rests": [rest for rest in rests if rest["key"] == keys.get(rest["scope"])],
    }


def offer_table(offers: Sequence[Document]) -> Any:
    columns = [
        Column("offer", wide=True),
        Column("price", right=True),
        Column("jobs", right=True),
        Column("", wide=True),
    ]
    alike: dict[tuple[str, ...], list[Document]] = {}
    for offer in offers:
        holds = "?" if offer["holds"] is None else str(offer["holds"])
        alike.setdefault((holds, *map(_what_fails, _offer_reasons(offer))), []).append(offer)
    rows = [(_names(same), _prices(same), holds, _why(same)) for (holds, *_), same in alike.items()]
    return table(columns, rows)


def _what_fails(reason: str) -> str:
    """What a reason says but for what the slot has: the same of offers of any size."""
    return _NUMBERS.sub("", _FACTS.sub("", reason))


def _why(offers: Sequence[Document]) -> str:
    """Why these offers, which lack the same, can't run it (or that they can), as it is of the first one."""
    nearest = "\n".join(_offer_reasons(offers[0]))
    differ = any("\n".join(_offer_reasons(one)) != nearest for one in offers[1:])
    return f"the nearest: {nearest}" if differ else nearest


def _names(offers: Sequence[Document]) -> str:
    """One offer by its name; several that lack the same by their number and the first names."""
    if len(offers) == 1:
        return str(offers[0]["offer"])
    shown = [str(offer["offer"]) for offer in offers[:NAMES_SHOWN]]
    more = [f"and {len(offers) - NAMES_SHOWN} more"] if len(offers) > NAMES_SHOWN else []
    return "\n".join([f"{len(offers)} offers alike:", *shown, *more])


def _prices(offers: Sequence[Document]) -> str:
    known = sorted({offer["price"] for offer in offers if offer["price"] is not None})
    if not known:
        return "?"
    return f"{known[0]:.4g}" if len(known) == 1 else f"{known[0]:.4g}–{known[-1]:.4g}"


def _offer_reasons(offer: Document) -> Iterator[str]:
    if offer["holds"] is None and not offer["fails"]:
        yield "not evaluated"
    # A request that is too large fails by a clause of either side's requirements, too.
    too_big = any(reason["code"] == _TOO_BIG for reason in offer["fails"])
    for reason in offer["fails"]:
        if not (too_big and reason["code"] != _TOO_BIG and _REQUEST.search(reason["text"])):
            yield reason["text"]
    for rest in offer["rests"]:
        failures = count(rest["failures"], "failure")
        yield f"rests until {clock(rest['until'])} after {failures}: {rest['reason']['text']}"
    if offer["holds"] and not offer["rests"]:
        yield "can run it"
