"""What is to be known of one cloud before a machine is launched there: each check is a small function."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from updraft.checks.asking import Answer, Once
from updraft.checks.finding import Area, Finding
from updraft.clouds.base import Catalogue, ImageInfo
from updraft.clouds.cloud import Cloud
from updraft.config.model import Settings
from updraft.config.tables.worker import WorkerClass
from updraft.core.model import CloudOffer, Quota
from updraft.core.slots.choice import chosen
from updraft.errors import AuthFailed, BadRequest, ConfigError, UpdraftError

ASKED = ("machines", "offers", "quota", "images", "key_pairs", "findings")
KEY_SETTING = "key_name"
READY = frozenset({"available", "active", "ready"})
ANY_IMAGE = "*"  # what a cloud lists that takes any name
_ARCHES = {"arm64": "aarch64", "amd64": "x86_64", "intel": "x86_64"}
_SHOWN = 3
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class CloudFacts:
    """What one cloud answered to each of ASKED; a value of None is a driver that doesn't tell such things."""

    name: str
    settings: Settings
    answers: Mapping[str, Answer]

    @property
    def area(self) -> Area:
        """Where its findings belong."""
        return Area(f"cloud {self.name}")

    @property
    def classes(self) -> Mapping[str, WorkerClass]:
        """The worker classes that may run here."""
        every = self.settings.classes
        return {name: one for name, one in every.items() if self.name in self.settings.clouds_of(one)}


@dataclass(frozen=True, slots=True)
class ImagesSeen:
    """The images that each wanted name or id means, and those that there are to choose from."""

    found: Mapping[str, Sequence[ImageInfo]]
    listed: Sequence[ImageInfo]


def look_for_images(cloud: Cloud, wanted: Iterable[str]) -> ImagesSeen | None:
    """Look for these images; None where the cloud tells nothing of images.

    Everything is listed only where the cloud can't look for one, or doesn't find it: it may be long.
    """
    catalogue, finder = cloud.catalogue, cloud.finder
    found: dict[str, list[ImageInfo]] = {}
    for name in wanted:
        info = finder.image(name) if finder is not None else None
        found[name] = [] if info is None else [info]
    if catalogue is None:
        return None if finder is None else ImagesSeen(found, ())
    if all(found.values()):
        return ImagesSeen(found, ())
    listed = catalogue.images()
    return ImagesSeen({name: infos or images_named(listed, name) for name, infos in found.items()}, listed)


def questions(name: str, make: Callable[[], Cloud], images: Iterable[str]) -> Mapping[str, Callable[[], Any]]:
    """What to ask of a cloud, by "cloud: question"; `make` makes it, once; `images` are wanted."""
    cloud = Once(make)

    def of_catalogue(question: Callable[[Catalogue], Any]) -> Any:
        catalogue = cloud().catalogue
        return None if catalogue is None else question(catalogue)

    asked: dict[str, Callable[[], Any]] = {
        "machines": lambda: cloud().machines.machines(),
        "offers": lambda: cloud().machines.offers(),
        "quota": lambda: cloud().machines.quota(),
        "key_pairs": lambda: of_catalogue(lambda one: one.key_pairs()),
        "findings": lambda: of_catalogue(lambda one: one.findings()),
        "images": lambda: look_for_images(cloud(), images),
    }
    return {f"{name}: {one}": question for one, question in asked.items()}


def images_wanted(settings: Settings, cloud: str) -> tuple[str, ...]:
    """The images that the classes name on this cloud, each once."""
    classes = settings.classes.values()
    names = (settings.images_of(one)[cloud] for one in classes if cloud in settings.clouds_of(one))
    return tuple(dict.fromkeys(names))


def judge(facts: CloudFacts) -> Iterator[Finding]:
    """Everything that is to be said of a cloud, the most basic first; what can't be looked at, together."""
    yield from credentials(facts)
    unknown: dict[str, list[str]] = {}
    silent = facts.answers["machines"].error is not None
    for what, check in _CHECKS.items():
        answer = facts.answers[what]
        if answer.error is not None:
            why = "not looked at, for the same reason" if silent else _short(answer.error)
            unknown.setdefault(why, []).append(_NAMES[what])
        elif answer.value is None:
            unknown.setdefault("the driver of this cloud doesn't tell", []).append(_NAMES[what])
        else:
            yield from check(facts, answer.value)
    for why, names in unknown.items():
        yield facts.area.skipped(", ".join(names), why)


def credentials(facts: CloudFacts) -> Iterator[Finding]:
    """The cloud answers, and takes what it is shown."""
    answer, area = facts.answers["machines"], facts.area
    error = answer.error
    if error is None:
        count = sum(one.alive for one in answer.value)
        yield area.ok("credentials", f"the cloud answers; {count} of its machines carry this pool's tag")
    elif isinstance(error, AuthFailed):
        yield area.problem(
            "credentials",
            _short(error),
            "put credentials that are good where the driver looks for them; docs/howto/troubleshooting.md "
            "lists the places",
        )
    elif isinstance(error, ConfigError | BadRequest):
        yield area.problem("settings", _short(error), f"correct [clouds.{facts.name}] in updraft.toml")
    else:
        yield area.problem(
            "credentials",
            f"the cloud doesn't answer: {_short(error)}",
            f"look at the endpoint in [clouds.{facts.name}], and whether this machine reaches it",
        )


# -------------------------------------------------------------------------------------- offers and flavors


def flavors(facts: CloudFacts, offers: Sequence[CloudOffer]) -> Iterator[Finding]:
    """Each class finds something to buy here, of known price where a ceiling on cost holds."""
    for name, worker in facts.classes.items():
        yield _flavors_of(facts, name, worker, offers)
    if not _cost_is_limited(facts):  # where it is, the lines above say what isn't bought
        yield from _prices(
            facts, [one for one in offers if any(takes(w, one) for w in facts.classes.values())]
        )


def _prices(facts: CloudFacts, taken: Sequence[CloudOffer]) -> Iterator[Finding]:
    """What the classes may buy here has a price, the cloud's or the site's own."""
    flavors = {one.flavor for one in taken}
    unknown = sorted({one.flavor for one in taken if one.price is None})
    if unknown:
        yield facts.area.warning(
            "prices",
            f"{len(unknown)} of {len(flavors)} flavors have no known price: {_some(unknown)}; costs are "
            "shown without theirs",
            f"write prices = {{ {_key(unknown[0])} = … }} into [clouds.{facts.name}]",
        )
    elif flavors:
        yield facts.area.ok("prices", f"the price of each of {len(flavors)} flavors is known")


def _flavors_of(facts: CloudFacts, name: str, worker: WorkerClass, offers: Sequence[CloudOffer]) -> Finding:
    area, what = facts.area, f"flavors of class {name}"
    found = [one for one in offers if takes(worker, one)]
    key = f"flavors in [classes.{name}]"
    if not found:
        on_sale = sorted({one.flavor for one in offers})
        return area.problem(
            what,
            f"no offer of this cloud is {', '.join(worker.flavors)} ({', '.join(worker.markets)})",
            f"change {key}; there is {_near(worker.flavors[0], on_sale)}: `updraft offers` lists them",
        )
    unpriced = sorted({one.flavor for one in found if one.price is None})
    if unpriced and _cost_is_limited(facts):
        text = f"no price is known of {_some(unpriced)}, and under a limit on cost such offers are not bought"
        remedy = f"write prices = {{ {_key(unpriced[0])} = … }} into [clouds.{facts.name}]"
        every = all(one.price is None for one in found)
        return area.problem(what, text, remedy) if every else area.warning(what, text, remedy)
    if all(one.left == 0 for one in found):
        return area.warning(what, "all of them are sold out now", f"wait, or widen {key}")
    sizes = sorted({one.flavor for one in found})
    number = "1 offer matches" if len(found) == 1 else f"{len(found)} offers match"
    return area.ok(what, f"{number}: {_some(sizes)}")


def takes(worker: WorkerClass, offer: CloudOffer) -> bool:
    """True where this class may have this offer."""
    return offer.market in worker.markets and chosen(offer.flavor, worker.flavors)


def _cost_is_limited(facts: CloudFacts) -> bool:
    limits = (facts.settings.limits, facts.settings.clouds[facts.name].limits)
    return any(one.cost_per_hour is not None for one in limits) or any(facts.settings.spending())


# -------------------------------------------------------------------------------------------------- images


def images(facts: CloudFacts, seen: ImagesSeen) -> Iterator[Finding]:
    """The image of each class is there, usable, and of an architecture that is sold here."""
    for name, worker in facts.classes.items():
        wanted = facts.settings.images_of(worker)[facts.name]
        yield _image(facts, f"image of class {name}", worker, wanted, seen)


def _image(facts: CloudFacts, what: str, worker: WorkerClass, wanted: str, seen: ImagesSeen) -> Finding:
    area, found = facts.area, seen.found[wanted]
    if not found:
        names = [text for one in seen.listed for text in (one.name, one.id) if text]
        return area.problem(
            what,
            f'the cloud has no image "{wanted}"',
            f"name another; there is {_near(wanted, names)}: `updraft images` lists them",
        )
    ready = [one for one in found if one.state.lower() in READY]
    if not ready:
        return area.problem(
            what,
            f'the image "{wanted}" is {found[0].state}, and can\'t be booted',
            "wait until it is available, or name another",
        )
    if len(ready) > 1:
        return area.warning(
            what,
            f'{len(ready)} images are called "{wanted}": which one is booted is the cloud\'s choice',
            f"write the id of the one that is meant, such as {ready[0].id}",
        )
    offers = facts.answers["offers"].value or ()
    arches = {_arch(one.arch) for one in offers if takes(worker, one)}
    if ready[0].arch and arches and _arch(ready[0].arch) not in arches:
        return area.problem(
            what,
            f'the image "{wanted}" is for {ready[0].arch}, the flavors are for {_some(sorted(arches))}',
            "name an image or flavors of the same architecture",
        )
    known_as = next((f" ({one})" for one in (ready[0].name, ready[0].id) if one not in (wanted, "")), "")
    return area.ok(what, f"{wanted}{known_as} is {ready[0].state}")


def images_named(listed: Sequence[ImageInfo], wanted: str) -> list[ImageInfo]:
    """The images that this name or id means; the id goes before the name."""
    exact = [one for one in listed if one.id == wanted]
    return exact or [one for one in listed if one.name in (wanted, ANY_IMAGE)]


def _arch(text: str) -> str:
    lower = text.lower()
    return _ARCHES.get(lower, lower)


# ---------------------------------------------------------------------------------- keys, quotas, findings


def key_pair(facts: CloudFacts, names: Sequence[str]) -> Iterator[Finding]:
    """The key pair that the settings name is there."""
    wanted = str(facts.settings.clouds[facts.name].settings.get(KEY_SETTING) or "")
    if not wanted:
        yield facts.area.ok("key pair", "none is asked for: nobody logs in to the machines")
    elif wanted in names:
        yield facts.area.ok("key pair", f"{wanted} is there")
    else:
        yield facts.area.problem(
            "key pair",
            f'the cloud has no key pair "{wanted}"',
            f"name another; there is {_near(wanted, names)}; or make it: `updraft init --key {wanted}` does",
        )


def quota(facts: CloudFacts, left: Quota) -> Iterator[Finding]:
    """Something is left of every quota."""
    area = facts.area
    amounts = {"machines": left.machines, "cores": left.cores}
    used_up = [name for name, amount in amounts.items() if amount is not None and amount <= 0]
    known = [f"{amount} {name}" for name, amount in amounts.items() if amount is not None]
    endless = [name for name in amounts if name in left.unlimited]
    if used_up:
        machines = facts.answers["machines"].value or ()
        text = f"nothing is left of the cloud's quota of {' and '.join(used_up)}"
        remedy = "end what isn't needed, or ask the cloud for more"
        ours = any(one.alive for one in machines)
        yield area.warning("quota", text, remedy) if ours else area.problem("quota", text, remedy)
    elif known:
        yield area.ok("quota", f"{' and '.join(known)} are left")
    elif endless:
        yield area.ok("quota", "the cloud sets no limit")
    else:
        yield area.skipped("quota", "the cloud doesn't say what is left: it is learned from its refusals")


def driver_findings(facts: CloudFacts, found: Sequence[Any]) -> Iterator[Finding]:
    """What the driver itself has to say of its endpoint."""
    return map(facts.area.of_driver, found)


_CHECKS: Mapping[str, Callable[[CloudFacts, Any], Iterator[Finding]]] = {
    "images": images,
    "offers": flavors,
    "key_pairs": key_pair,
    "quota": quota,
    "findings": driver_findings,
}
_NAMES = {
    "images": "images",
    "offers": "flavors",
    "key_pairs": "key pair",
    "quota": "quota",
    "findings": "endpoint",
}


def _near(wanted: str, names: Sequence[str]) -> str:
    """The names that come closest, else the first few; "none" where there is none."""
    close = get_close_matches(wanted, names, n=_SHOWN, cutoff=0.5)
    return _some(list(dict.fromkeys(close)) or sorted(set(names)))


def _some(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _key(name: str) -> str:
    """A name as a key of a TOML table."""
    plain = name.replace("-", "").replace("_", "")
    return name if plain.isalnum() and plain.isascii() else f'"{name}"'


def _short(error: UpdraftError | None) -> str:
    return " ".join(str(error or "").split()).rstrip(".")[:_LONGEST]
