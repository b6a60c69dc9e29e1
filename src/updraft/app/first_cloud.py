"""What the first updraft.toml is made from: what this machine knows of a cloud, and what the cloud has."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from updraft import config
from updraft.checks.asking import ask
from updraft.clouds.base import Catalogue, ImageFinder, ImageInfo
from updraft.clouds.cloud import Owner, cloud_of
from updraft.clouds.ec2.settings import rc_environment
from updraft.clouds.local import process
from updraft.config.drivers import settings_model
from updraft.core.leftovers import Kind
from updraft.core.model import CloudOffer
from updraft.errors import UpdraftError, UsageError
from updraft.ledger.made import note_made
from updraft.provision import first_settings
from updraft.provision.first_settings import Wanted
from updraft.provision.keys import make_key

DEADLINE = 60.0
KEY_SETTING = "key_name"
MANY_FLAVORS = ("ec2",)


@dataclass(frozen=True, slots=True)
class CloudAnswers:
    """What a cloud answered; `error` is why it did not answer all of it, empty where it did."""

    offers: Sequence[CloudOffer] = ()
    images: Sequence[ImageInfo] = ()
    key_pairs: Sequence[str] = ()
    catalogue: Catalogue | None = None
    error: str = ""
    finder: ImageFinder | None = None


def known_here(driver: str, given: Mapping[str, str]) -> dict[str, str]:
    """What this machine and this shell know of a cloud of the driver."""
    if driver == "local":
        return {} if given else _of_running_cloud()
    if driver == "openstack":  # the service has another environment: the file has to say it
        return {"os_cloud": os.environ.get("OS_CLOUD", "")}
    return _of_this_shell(os.environ, given.get("profile")) if driver == "ec2" else {}


def _of_this_shell(environ: Mapping[str, str], profile: str | None) -> dict[str, str]:
    """What the environment says of an EC2 cloud. The file has to say it: the service has another one."""
    rc = rc_environment(environ, profile)
    found = {
        "endpoint": "" if rc is None else rc[2],
        "region": environ.get("AWS_DEFAULT_REGION", ""),
        "profile": environ.get("AWS_PROFILE", ""),
    }
    return {key: value for key, value in found.items() if value}


def _of_running_cloud() -> dict[str, str]:
    """Where the local cloud of this machine is, if `updraft local up` has started one."""
    cloud = process.find(process.usual_state())
    return (
        {} if cloud is None else {"endpoint": cloud.endpoint, "credential_file": str(cloud.credential_file)}
    )


def look(name: str, pool: str, driver: str, settings: Mapping[str, Any]) -> CloudAnswers:
    """What the cloud has. Raises UsageError where these settings can't be a cloud's."""
    try:
        made = cloud_of(name, driver, Owner(pool), settings)
    except UsageError:
        raise
    except UpdraftError as error:
        return CloudAnswers(error=str(error))
    catalogue = made.catalogue
    questions: dict[str, Any] = {"offers": made.machines.offers}
    if catalogue is not None:
        questions |= {"images": catalogue.images, "key_pairs": catalogue.key_pairs}
    answers = ask(questions, DEADLINE)
    failed = next((str(one.error) for one in answers.values() if one.error is not None), "")
    values = {what: answer.value or () for what, answer in answers.items()}
    return CloudAnswers(**values, catalogue=catalogue, error=failed, finder=made.finder)


def narrowed(driver: str, settings: Mapping[str, Any], flavors: Sequence[str]) -> Mapping[str, Any]:
    """The settings for a cloud that is to be asked about these flavors only, where it has very many.

    All of Amazon's types take several calls and seconds to list.
    """
    if driver not in MANY_FLAVORS or "flavors" in settings or not flavors or "*" in flavors:
        return settings
    return {**settings, "flavors": list(flavors)}


def has_keys(driver: str) -> bool:
    """True where machines of this driver can be given a key pair."""
    model = settings_model(driver)
    return model is not None and KEY_SETTING in model.model_fields


def write(
    path: Path, wanted: Wanted, seen: CloudAnswers, key: str, key_file: Path, say: Callable[[str], None]
) -> None:
    """Write the file, after the key pair where it has to be made; `say` is told of that.

    Raises UsageError for answers that make no configuration, and for a file that can't be written.
    """
    text = first_settings.text_of(wanted)
    first_settings.check(path, text)
    made = bool(key and key not in seen.key_pairs and not seen.error)
    if made:
        file = key_file.expanduser()
        make_key(seen.catalogue, key, file)
        say(f"The key pair {key} is made; its private key is {file}.")
    first_settings.write(path, text)
    if made:
        # In the ledger it is said that the pair is updraft's: no cloud says so for every kind of them.
        why = note_made(config.place(path).ledger, wanted.cloud, Kind.KEY_PAIR, key)
        if why:
            say(f"`updraft leftovers` won't know of the key pair: {why}")
