"""What `init` asks of a cloud: whether it answers, and what there is to choose from."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, cast

from updraft.checks.asking import ask
from updraft.cli.images.catalogue import price
from updraft.cli.output import megabytes, waiting
from updraft.cli.setup.asking import Asker, Choice, Question
from updraft.clouds.base import Catalogue, Driver, ImageFinder, ImageInfo, catalogue_of, image_finder_of
from updraft.config.drivers import driver_entry, driver_names, settings_model
from updraft.core.model import CloudOffer
from updraft.errors import CloudError, UpdraftError, UsageError

DEADLINE = 60.0
ANY_IMAGE = "*"
KEY_SETTING = "key_name"
MANY_FLAVORS = ("ec2",)
# What a driver has to know before it can answer; each is a setting of the driver, asked in this order.
ASKED: Mapping[str, Mapping[str, tuple[str, bool]]] = {
    "ec2": {
        "endpoint": ("Address of the EC2 endpoint (empty: Amazon's)", False),
        "region": ("Region (empty: that of the profile)", False),
        "profile": (
            "Profile with the credentials (empty: the default one, the environment, or the machine's role)",
            False,
        ),
    },
    "local": {
        "endpoint": ("Where the local cloud listens (unix:/… or http://…)", True),
        "credential_file": ("File with its credential (empty: the machine's role)", False),
    },
    "openstack": {
        "os_cloud": ("The cloud's name in clouds.yaml (empty: the only one there is)", False),
        "region": ("Region (empty: that of clouds.yaml)", False),
    },
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a cloud answered; `error` is why it did not answer all of it, empty where it did."""

    offers: Sequence[CloudOffer] = ()
    images: Sequence[ImageInfo] = ()
    key_pairs: Sequence[str] = ()
    catalogue: Catalogue | None = None
    error: str = ""
    finder: ImageFinder | None = None


def choose_driver(asker: Asker, given: str | None) -> str:
    """The driver of the cloud."""
    drivers = [Choice(name, (), (name, ABOUT.get(name, ""))) for name in driver_names()]
    question = Question("--driver", "Which kind of cloud?", f"one of {', '.join(driver_names())}")
    return asker.one_of(question, given, None, drivers)


ABOUT = {
    "ec2": "Amazon's EC2, and every cloud that speaks its API",
    "local": "the cloud on one machine, for trying things",
    "fake": "a cloud in memory, for trying things",
    "openstack": "a project on an OpenStack cloud, by its native API",
}


def driver_settings(asker: Asker, driver: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The driver's own settings: those that are given, and those that it must be asked for."""
    found: dict[str, Any] = dict(given)
    defaults = _defaults(driver, given)
    for key, (words, needed) in ASKED.get(driver, {}).items():
        flag = f"--{key.replace('_', '-')}"
        default = defaults.get(key, None if needed else "")
        answer = asker.text(Question(flag, words), given.get(key), default, str.strip)
        if answer:
            found[key] = answer
    return found


def _defaults(driver: str, given: Mapping[str, str]) -> dict[str, str]:
    """What this machine and this shell know of a cloud of the driver."""
    if driver == "local":
        return {} if given else _of_running_cloud()
    if driver == "openstack":  # the service has another environment: the file has to say it
        return {"os_cloud": os.environ.get("OS_CLOUD", "")}
    return _of_this_shell(os.environ, given.get("profile")) if driver == "ec2" else {}


def _of_this_shell(environ: Mapping[str, str], profile: str | None) -> dict[str, str]:
    """What the environment says of an EC2 cloud. The file has to say it: the service has another one."""
    from updraft.clouds.ec2.settings import rc_environment

    rc = rc_environment(environ, profile)
    found = {
        "endpoint": "" if rc is None else rc[2],
        "region": environ.get("AWS_DEFAULT_REGION", ""),
        "profile": environ.get("AWS_PROFILE", ""),
    }
    return {key: value for key, value in found.items() if value}


def _of_running_cloud() -> dict[str, str]:
    """Where the local cloud of this machine is, if `updraft local up` has started one."""
    from updraft.cli.setup.local import usual_state
    from updraft.clouds.local import process

    cloud = process.find(usual_state())
    return (
        {} if cloud is None else {"endpoint": cloud.endpoint, "credential_file": str(cloud.credential_file)}
    )


def look(name: str, pool: str, driver: str, settings: Mapping[str, Any]) -> Seen:
    """What the cloud has. Raises UsageError where these settings can't be a cloud's."""
    entry = driver_entry(driver)
    if entry is None:
        raise UsageError(f'there is no driver "{driver}"; installed are {", ".join(driver_names())}')
    try:
        made = cast(Driver, entry.load()(name, pool, dict(settings)))
    except UsageError:
        raise
    except UpdraftError as error:
        return Seen(error=str(error))
    catalogue = catalogue_of(made)
    questions: dict[str, Any] = {"offers": made.offers}
    if catalogue is not None:
        questions |= {"images": catalogue.images, "key_pairs": catalogue.key_pairs}
    with waiting(f"asking the cloud {name}"):
        answers = ask(questions, DEADLINE)
    failed = next((str(one.error) for one in answers.values() if one.error is not None), "")
    values = {what: answer.value or () for what, answer in answers.items()}
    return Seen(**values, catalogue=catalogue, error=failed, finder=image_finder_of(made))


def image_choices(images: Sequence[ImageInfo]) -> list[Choice]:
    """The images to choose from; none where the cloud takes any name."""
    if any(one.name == ANY_IMAGE for one in images):
        return []
    return [image_choice(one) for one in sorted(images, key=lambda one: (one.name, one.id))]


def image_choice(one: ImageInfo) -> Choice:
    """An image to choose: its id is written."""
    return Choice(one.id, (one.name,), (one.id, one.name if one.name != one.id else "", one.state, one.arch))


def find_image(seen: Seen, wanted: str) -> Choice | None:
    """An image that isn't among those listed: somebody else's, by its id."""
    info = None if seen.finder is None or not wanted else seen.finder.image(wanted)
    return None if info is None else image_choice(info)


def flavor_choices(offers: Sequence[CloudOffer]) -> list[Choice]:
    """The flavors to choose from, the cheapest first, each once."""
    cheapest: dict[str, CloudOffer] = {}
    for offer in sorted(offers, key=_price):
        if offer.market == "on-demand" or offer.flavor not in cheapest:
            known = cheapest.get(offer.flavor)
            if known is None or (known.market != "on-demand" and offer.market == "on-demand"):
                cheapest[offer.flavor] = offer
    return [
        Choice(one.flavor, (), (one.flavor, _size(one), f"{price(one.price)} per hour", one.arch.lower()))
        for one in sorted(cheapest.values(), key=_price)
    ]


def _price(offer: CloudOffer) -> tuple[bool, float, int, int, str]:
    """The cheapest first, and of those whose price isn't known the smallest."""
    what = offer.resources
    return (offer.price is None, offer.price or 0.0, what.cpus, what.memory, offer.flavor)


def _size(offer: CloudOffer) -> str:
    what = offer.resources
    gpus = f", {what.gpus} GPU" + ("s" if what.gpus > 1 else "") if what.gpus else ""
    return f"{what.cpus} cpu{'s' if what.cpus > 1 else ''}, {megabytes(what.memory)}{gpus}"


def narrowed(driver: str, settings: Mapping[str, Any], flavors: Sequence[str]) -> Mapping[str, Any]:
    """The settings for a cloud that is to be asked about these flavors only, where it has very many.

    All of Amazon's types take several calls and seconds to list.
    """
    if driver not in MANY_FLAVORS or "flavors" in settings or not flavors or "*" in flavors:
        return settings
    return {**settings, "flavors": list(flavors)}


def has_keys(driver: str) -> bool:
    """True where machines of this driver can be given a key pair."""
    entry = driver_entry(driver)
    model = None if entry is None else settings_model(entry)
    return model is not None and KEY_SETTING in model.model_fields


# ------------------------------------------------------------------------------------------------ key pairs

NO_KEY = "none"


def choose_key(asker: Asker, seen: Seen, pool: str, given: str | None) -> str:
    """The key pair's name, one that is there or one to be made; empty for none."""
    fresh = f"updraft-{pool}"
    here = [Choice(name, (), (name, "")) for name in seen.key_pairs]
    others = [] if fresh in seen.key_pairs else [Choice(fresh, (), (fresh, "make it now"))]
    if given is not None or not asker.person:
        return "" if given in (None, NO_KEY) else str(given)
    nobody = Choice(NO_KEY, (), (NO_KEY, "nobody logs in to the machines"))
    question = Question("--key", "Which key pair opens the machines (SSH)?")
    default = NO_KEY if here or seen.catalogue is None else fresh
    answer = asker.one_of(question, None, default, [*here, *others, nobody])
    return "" if answer == NO_KEY else answer


_ROOM = 16384  # bytes: more than any private key takes


def make_key(seen: Seen, name: str, file: Path) -> None:
    """Make the key pair in the cloud, and save its private key where only its owner reads it.

    The file and its room on the disk are there before the cloud is asked: a private key is given once, and
    must find its place. Where it finds none all the same, the pair is deleted: nobody is to choose it.
    """
    if seen.catalogue is None:
        raise UsageError(f"the driver can't make the key pair {name}; make it in the cloud, then name it")
    try:
        with _room_for_key(file) as private:
            key = seen.catalogue.create_key_pair(name)
            try:
                private.write(key.encode("ascii"))
                private.truncate()
                os.fsync(private.fileno())
            except (OSError, ValueError) as error:
                raise UsageError(_unsaved(seen.catalogue, name, file, error)) from error
    except FileExistsError as error:
        raise UsageError(f"{file} is there already; name another file with --key-file") from error
    except OSError as error:
        raise UsageError(
            f"{file} can't be written: {error.strerror}; name another with --key-file"
        ) from error


@contextmanager
def _room_for_key(file: Path) -> Iterator[FileIO]:
    """A new file for its owner alone, with its room on the disk; gone again where what follows fails."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with FileIO(handle, "w") as private:
            os.posix_fallocate(handle, 0, _ROOM)
            yield private
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _unsaved(catalogue: Catalogue, name: str, file: Path, error: Exception) -> str:
    """Deletes the key pair whose private key is lost; a sentence that says how it went."""
    why = f"the private key of {name} can't be written to {file}: {getattr(error, 'strerror', None) or error}"
    try:
        catalogue.delete_key_pair(name)
    except CloudError as left:
        return f"{why}; delete the key pair in the cloud, nobody has its private key: {left}"
    return f"{why}; the key pair is deleted again"
