"""All that `init` asks, in the order in which a person thinks of it."""

import socket
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from updraft.app.first_cloud import KEY_SETTING, CloudAnswers, has_keys, look, narrowed
from updraft.cli.output import waiting
from updraft.cli.setup import cloud as from_cloud
from updraft.cli.setup.asking import Asker, SetupQuestion
from updraft.cli.setup.init import MACHINES
from updraft.config.values.checks import checked_pool_name
from updraft.config.values.units import seconds
from updraft.errors import BootstrapError, UsageError
from updraft.provision import pool_needs
from updraft.provision.first_settings import HOUR, Wanted

MANY_FLAVORS = 20


@dataclass(frozen=True, slots=True)
class Answered:
    """All that was answered, what the cloud said, the key pair, and what an existing pool needs."""

    wanted: Wanted
    seen: CloudAnswers
    key: str
    pool_lines: str


def answers(asker: Asker, given: Mapping[str, Any]) -> Answered:
    """Everything, in the order in which a person thinks of it."""
    pool, existing = _pool(asker, given)
    lines = pool_lines_of(asker, given) if existing else ""
    driver = from_cloud.choose_driver(asker, given["driver"])
    cloud = given["cloud"] or driver
    settings = from_cloud.driver_settings(asker, driver, _driver_flags(given))
    asked = narrowed(driver, settings, given["flavor"])
    with waiting(f"asking the cloud {cloud}"):
        seen = look(cloud, pool["name"], driver, asked)
    if seen.error:
        asker.say(f"the cloud doesn't answer: {seen.error}")
        if asker.person and not asker.yes("Go on without its lists?", default=False):
            raise click.Abort
    image, image_name = _image(asker, given["image"], seen)
    flavors = _flavors(asker, given["flavor"], seen)
    key = ""
    if has_keys(driver):
        key = from_cloud.choose_key(asker, seen, pool["name"], given["key"])
    elif given["key"] not in (None, from_cloud.NO_KEY):
        raise UsageError(f"--key: machines of the driver {driver} have no key pairs; leave it out")
    wanted = Wanted(
        pool=pool,
        cloud=cloud,
        driver=driver,
        settings={
            **narrowed(driver, settings, flavors),
            **({KEY_SETTING: key} if key else {}),
        },
        image=image,
        image_name=image_name,
        flavors=flavors,
        limits=_limits(asker, given),
        worker=_worker(given, pool),
    )
    return Answered(wanted, seen, key, lines)


def _pool(asker: Asker, given: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The table [pool], and whether the pool is there already."""

    def name(text: str) -> str:
        try:
            return checked_pool_name(text)
        except ValueError as error:
            raise UsageError(f"--pool-name: {error}") from error

    here = pool_needs.of_this_machine()
    question = SetupQuestion("--pool-name", "What is the pool called?")
    table: dict[str, Any] = {
        "name": asker.text(question, given["pool_name"], socket.gethostname().split(".")[0], name)
    }
    for key in ("collector", "trust_domain", "token", "state_dir"):
        if given[key] is not None:
            table[key] = given[key]
    length = pool_needs.lease(here)
    if length is not None:
        table["job_lease"] = length
    existing = given["pool"] == "existing"
    if given["pool"] is None:
        existing = asker.yes("Is the HTCondor pool there already?", default=bool(here)) and asker.person
    return table, existing


def _driver_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        key: given[key]
        for key in ("endpoint", "region", "profile", "os_cloud", "credential_file")
        if given[key] is not None
    }
    for text in given["set"]:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: write KEY=VALUE")
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:  # a plain text needs no quotes
            found[key.strip()] = value
    return found


def _image(asker: Asker, given: str | None, seen: CloudAnswers) -> tuple[str, str]:
    """The image as the file names it, and its name."""
    choices = from_cloud.image_choices(seen.images)
    hint = f"such as {choices[0].value}" if choices else "a name or id of the cloud"
    question = SetupQuestion("--image", "Which image do the workers boot (number, id, name or a part)?", hint)
    if not choices:
        if asker.person and given is None and not seen.error:
            asker.say("The cloud lists no image of yours: give the id of one that you may use.")
        return _plain(asker, question, given), ""
    image = asker.one_of(question, given, None, choices, partial(from_cloud.find_image, seen))
    return image, next((one.names[0] for one in choices if one.value == image), "")


def _plain(asker: Asker, question: Any, given: str | None) -> str:
    def check(text: str) -> str:
        if not text.strip():
            raise UsageError(f"{question.flag}: it has a name")
        return text.strip()

    return asker.text(question, given, None, check)


def _flavors(asker: Asker, given: tuple[str, ...], seen: CloudAnswers) -> tuple[str, ...]:
    choices = from_cloud.flavor_choices(seen.offers)
    words = "Which flavors may be bought (numbers, names or patterns, with commas)?"
    # Of very many none is a good guess: the cheapest is too small for most jobs.
    default = "*" if len(choices) <= MANY_FLAVORS or not asker.person else None
    return asker.some_of(SetupQuestion("--flavor", words, "such as 1, 4 or m5.*"), given, default, choices)


def _limits(asker: Asker, given: Mapping[str, Any]) -> dict[str, Any]:
    def number(flag: str, kind: type[int] | type[float]) -> Callable[[str], int | float | None]:
        def check(text: str) -> int | float | None:
            if text.strip().lower() in ("", "none"):
                return None
            try:
                value = kind(text)
            except ValueError as error:
                raise UsageError(f'{flag}: "{text}" is no number; write one, or none for no limit') from error
            if value < 0:
                raise UsageError(f"{flag}: {text} is below 0")
            return value

        return check

    asked: tuple[tuple[str, str, str, type[int] | type[float]], ...] = (
        ("machines", "At most how many machines at one time (none: no limit)?", MACHINES, int),
        ("cores", "At most how many cores (empty: no limit)?", "", int),
        ("cost_per_hour", "At most what cost per hour (empty: no limit)?", "", float),
    )
    found: dict[str, Any] = {}
    for key, words, default, kind in asked:
        flag = f"--{key.replace('_', '-')}"
        found[key] = asker.text(SetupQuestion(flag, words), given[key], default, number(flag, kind))
    return found


def _worker(given: Mapping[str, Any], pool: Mapping[str, Any]) -> dict[str, Any]:
    """What of the class is said by flags; patience that the pool's job lease asks for."""
    found = {key: given[key] for key in ("min", "max", "idle_limit") if given[key] is not None}
    if given["market"]:
        found["markets"] = list(given["market"])
    if "job_lease" in pool and seconds(pool["job_lease"]) > HOUR:
        found["head_gone_after"] = pool["job_lease"]
    return found


def pool_lines_of(asker: Asker, given: Mapping[str, Any]) -> str:
    """What an existing pool needs, to be followed in order."""

    def check(text: str) -> str:
        try:
            pool_needs.instructions(text, elsewhere=False)
        except BootstrapError as error:
            raise UsageError(f"--trust-domain: {error}") from error
        return text

    question = SetupQuestion(
        "--trust-domain",
        "TRUST_DOMAIN of the pool?",
        "what `condor_config_val TRUST_DOMAIN` says on the head",
    )
    default = pool_needs.of_this_machine().get("TRUST_DOMAIN")
    trust_domain = asker.text(question, given["trust_domain"], default, check)
    return pool_needs.instructions(trust_domain, elsewhere=given["collector"] is not None)
