"""The clouds of the settings as a person names them, asked all at the same time: rows, groups, consoles."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from updraft.app import wiring
from updraft.app.call import Call
from updraft.checks.asking import ask
from updraft.config import load
from updraft.config.model import Settings
from updraft.errors import ConfigError, UsageError
from updraft.ledger.secrets import scrub
from updraft.provision.heads.network import Network

R = TypeVar("R")
_CONSOLE_DEADLINE = 20.0


def one_cloud(settings: Settings, name: str) -> str:
    """The cloud of this name, or the only one. UsageError where that can't be."""
    if not name and len(settings.clouds) > 1:
        raise UsageError(f"there is more than one cloud; say one of {', '.join(settings.clouds)}")
    return named_clouds(settings, (name,) if name else ())[0]


def named_clouds(settings: Settings, clouds: Sequence[str]) -> list[str]:
    """These clouds, or all. UsageError where there is none of such a name."""
    for name in clouds:
        if name not in settings.clouds:
            raise UsageError(f"there is no cloud {name}; updraft.toml has {', '.join(settings.clouds)}")
    return list(clouds or settings.clouds)


def rows_of(
    settings: Settings, names: Sequence[str], rows: Callable[[Settings, str], list[R]], deadline: float
) -> tuple[list[R], Mapping[str, str]]:
    """The rows of these clouds that answer, and the errors of the others; all are asked at the same time."""
    answers = ask({name: partial(rows, settings, name) for name in names}, deadline)
    found = [row for answer in answers.values() for row in answer.value or ()]
    return found, {name: str(answer.error) for name, answer in answers.items() if answer.error is not None}


def network_of(settings: Settings, cloud: str) -> Network | str:
    """The groups of this cloud; a sentence where it has none."""
    made = wiring.make_cloud(settings, cloud, settings.clouds[cloud])
    if made.network is None:
        return made.traits.no_network
    return Network(settings, cloud, made.network, wiring.identity(settings))


def live_console(call: Call, cloud: str, machine: str) -> tuple[str, str]:
    """The end of a machine's console without what looks like a secret, and why there is none ("" if any).

    It is an image's own text: whoever shows it makes it printable.
    """
    try:
        settings = load(call.file)
    except ConfigError:
        return "", "updraft.toml can't be read: `updraft config check` says why"
    if cloud not in settings.clouds:
        return "", f"updraft.toml has no cloud {cloud} any more"

    def console() -> str:
        return wiring.make_cloud(settings, cloud, settings.clouds[cloud]).machines.console(machine)

    answer = ask({"console": console}, _CONSOLE_DEADLINE)["console"]
    if answer.error is not None:
        return "", str(answer.error)
    return (scrub(answer.value), "") if answer.value.strip() else ("", "its cloud shows nothing of it yet")
