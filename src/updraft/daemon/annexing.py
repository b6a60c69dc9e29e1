"""What may be asked for as an annex: the one place that says no, whoever asks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from updraft.bootstrap.layers import parse_layer
from updraft.core.model import Annex, MachineRecord
from updraft.core.model.annexes import NAME
from updraft.core.reasons import spell
from updraft.core.settings import Policy, WorkerClass
from updraft.core.slots.variants import LONGEST
from updraft.errors import BootstrapError, UsageError

DURATION, IDLE = 3000.0, 900.0  # seconds; those of condor_annex
OWN_TAGS = "updraft:"
_OWNER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(@[A-Za-z0-9.-]{1,63})?")  # all of it fits into a tag
_LONGEST_KEY, _LONGEST_VALUE = 128, 255
_MOST_TAGS = 30


@dataclass(frozen=True, slots=True)
class AnnexRequest:
    """What somebody asks for; durations in seconds, `layer` is the text of user-data."""

    name: str
    owner: str
    worker_class: str = ""
    machines: int = 0
    cores: int = 0
    duration: float = DURATION
    idle: float = IDLE
    for_all: bool = False
    spot: bool | None = None
    max_price: float | None = None
    clouds: tuple[str, ...] = ()
    flavors: tuple[str, ...] = ()
    image: str = ""
    security_groups: tuple[str, ...] = ()
    layer: str = field(default="", repr=False)
    tags: Mapping[str, str] = field(default_factory=dict)


def annex_of(asked: AnnexRequest, policy: Policy, now: float) -> Annex:
    """The annex that is asked for, its layer not kept yet. Raises UsageError for what is none."""
    if not NAME.fullmatch(asked.name):
        raise UsageError(
            f"{asked.name[:80]!r} is no name of an annex: a letter, then letters, digits, - and _"
        )
    if not _OWNER.fullmatch(asked.owner):
        raise UsageError(f"{asked.owner[:80]!r} is no name of a user")
    if (asked.machines > 0) == (asked.cores > 0):
        raise UsageError("say how large it is to be: with --count so many machines, or with --cores")
    worker = class_of(asked.worker_class, policy)
    _check_worker(asked, worker)
    _check_lease(asked.duration, worker)
    if not 0 <= asked.idle < float("inf"):
        raise UsageError("an idle limit is a duration from 0s")
    if asked.max_price is not None and not 0 <= asked.max_price < float("inf"):
        raise UsageError("a highest price is a number from 0")
    _check_tags(asked.tags)
    _check_choice(asked, worker)
    if asked.layer:
        _check_layer(asked.name, asked.layer)
    annex = Annex(
        name=asked.name,
        owner=asked.owner,
        worker_class=worker.name,
        machines=asked.machines,
        cores=asked.cores,
        until=now + asked.duration,
        idle=asked.idle,
        for_all=asked.for_all,
        spot=asked.spot,
        max_price=asked.max_price,
        clouds=asked.clouds,
        flavors=asked.flavors,
        image=_other_image(asked, worker),
        security_groups=asked.security_groups,
        tags=dict(asked.tags),
        since=now,
    )
    if len(annex.variant.text) > LONGEST:
        raise UsageError(f"annex {annex.name}, its owner, image and groups have too long names")
    return annex


def class_of(name: str, policy: Policy) -> WorkerClass:
    """The class of this name, or the only one. Raises UsageError for another."""
    if not name and len(policy.classes) == 1:
        return next(iter(policy.classes.values()))
    found = policy.classes.get(name)
    if found is None:
        what = f"there is no class {name}" if name else "there is more than one class"
        raise UsageError(f"{what}; say one of {', '.join(policy.classes)} with --class")
    return found


def extended(annex: Annex, duration: float, policy: Policy, now: float) -> float:
    """When its lease ends, if that is `duration` from now. Raises UsageError where it may not."""
    until = now + duration
    if until < annex.until:
        raise UsageError(f"the lease of annex {annex.name} ends later than that; stop ends it")
    worker = policy.classes.get(annex.worker_class)
    if worker is None:
        raise UsageError(
            f"class {annex.worker_class} of annex {annex.name} is no longer in the settings, so nobody knows "
            "how long its machines live: create another one"
        )
    if until - annex.since > worker.lifetime:
        raise UsageError(
            f"machines of class {worker.name} live for {spell(worker.lifetime)}, and the first of annex "
            f"{annex.name} would be older: create another one"
        )
    return until


def check_tokens(
    annex: Annex, until: float, now: float, records: Iterable[MachineRecord], expiries: Mapping[str, float]
) -> None:
    """Raises UsageError where a machine of it has a token that ends before `until`.

    Tokens are as long as their class let machines live when they were launched, which may have been less than
    it is now. `expiries` says by launch when its token ends; one of which nothing is known has the class's.
    """
    ends = [expiries[one.launch_key] for one in _live(annex, records) if one.launch_key in expiries]
    if ends and until > min(ends):
        left = spell(max(0.0, min(ends) - now))
        raise UsageError(
            f"the first token of a machine of annex {annex.name} ends in {left}, and "
            "tokens aren't renewed: create another annex"
        )


def check_told(annex: Annex, records: Iterable[MachineRecord], told: Mapping[str, bool]) -> None:
    """Raises UsageError where machines of it are on a cloud that tells them of no later lease.

    They would end with the lease that they were launched with, jobs and all. `told` says it of each cloud;
    one of which nothing is known does.
    """
    live = _live(annex, records)
    deaf = sorted({one.cloud for one in live if not told.get(one.cloud, True)})
    if deaf:
        raise UsageError(
            f"cloud {deaf[0]} tells its machines of no later lease, and those of annex {annex.name} end by "
            "themselves with the one that they have: create another annex"
        )


def _live(annex: Annex, records: Iterable[MachineRecord]) -> list[MachineRecord]:
    """Its machines that haven't ended."""
    return [one for one in records if one.ended_at is None and one.variant.annex == annex.name]


def _check_worker(asked: AnnexRequest, worker: WorkerClass) -> None:
    if asked.for_all and worker.owner_only:
        raise UsageError(f"class {worker.name} has machines for one user each: its annexes can't be for all")
    market = {True: "spot", False: "on-demand", None: ""}[asked.spot]
    if market and market not in worker.markets:
        raise UsageError(f"class {worker.name} isn't bought {market}: its markets are {worker.markets}")


def _check_choice(asked: AnnexRequest, worker: WorkerClass) -> None:
    """Clouds, flavors, image and groups that it may have, as far as settings alone tell."""
    for cloud in asked.clouds:
        if cloud not in worker.clouds:
            raise UsageError(
                f"class {worker.name} isn't on cloud {cloud[:80]!r}: say {', '.join(worker.clouds)}"
            )
    for text in (*asked.flavors, *asked.security_groups, *((asked.image,) if asked.image else ())):
        if not text or not text.isprintable() or "," in text:
            raise UsageError(f"{text[:80]!r} is no name of a flavor, an image or a security group")
    clouds = asked.clouds or worker.clouds
    image = _other_image(asked, worker)
    if (image or asked.security_groups) and len(clouds) > 1 and not asked.clouds:
        raise UsageError(f"say with --cloud in which cloud that image or group is: {', '.join(clouds)}")
    if image and not any(fnmatchcase(image, one) for one in worker.images_allowed):
        raise UsageError(
            f"class {worker.name} doesn't allow the image {image[:80]!r}: [classes.{worker.name}] "
            "images_allowed says which it does"
        )


def _other_image(asked: AnnexRequest, worker: WorkerClass) -> str:
    """The image that is asked for; "" where the class has that one anyway."""
    own = {worker.images.get(cloud) for cloud in asked.clouds or worker.clouds}
    return "" if own == {asked.image} else asked.image


def _check_lease(duration: float, worker: WorkerClass) -> None:
    if not 0 < duration < float("inf"):
        raise UsageError("a lease is a duration above 0s")
    if duration > worker.lifetime:
        raise UsageError(
            f"machines of class {worker.name} live for {spell(worker.lifetime)}: no lease is longer"
        )


def _check_tags(tags: Mapping[str, str]) -> None:
    if len(tags) > _MOST_TAGS:
        raise UsageError(f"an annex may have {_MOST_TAGS} tags")
    for key, value in tags.items():
        if key.lower().startswith(OWN_TAGS):
            raise UsageError(f"tags that begin with {OWN_TAGS} are updraft's own")
        if (
            not key
            or len(key) > _LONGEST_KEY
            or len(value) > _LONGEST_VALUE
            or not (key + value).isprintable()
        ):
            raise UsageError(f"{key[:80]!r} is no tag that every cloud takes, or its value isn't")


def _check_layer(name: str, text: str) -> None:
    try:
        parse_layer(f"user-data of annex {name}", text)
    except BootstrapError as error:
        raise UsageError(str(error)) from error
