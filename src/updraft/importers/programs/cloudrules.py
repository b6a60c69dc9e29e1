"""Rules in the words of a site with several clouds: what Cloud Scheduler and csv2 say in the same manner."""

from collections.abc import Iterator

from updraft.importers.output.drafts import CLOUD, CLOUDS_YAML
from updraft.importers.output.report import Fate
from updraft.importers.output.rules import Kind, Rule

_LOGIN = f"the login of an OpenStack cloud stands in {CLOUDS_YAML}, not in updraft.toml"


def taken(section: str, key: str, target: str, becomes: str, why: str, kind: Kind = Kind.TEXT) -> Rule:
    """A key whose value is taken."""
    return Rule(section, key, Fate.TAKEN, why, target, becomes, kind)


def of_cloud(key: str, target: str, setting: str, why: str, kind: Kind = Kind.TEXT) -> Rule:
    """A key of a cloud that becomes a setting of the cloud."""
    return taken(CLOUD, key, target, f"[clouds.{CLOUD}] {setting}", why, kind)


def of_class(section: str, key: str, target: str, setting: str, why: str, kind: Kind = Kind.TEXT) -> Rule:
    """A key that becomes a setting of the class."""
    return taken(section, key, target, f"[classes.NAME] {setting}", why, kind)


def login(key: str, target: str, name: str, more: str = "") -> Rule:
    """A key of a cloud that becomes a part of its entry in clouds.yaml."""
    return taken(CLOUD, key, target, f"clouds.yaml: {name}", _LOGIN + more)


def alike(section: str, fate: Fate, why: str, *keys: str) -> Iterator[Rule]:
    """Keys of which the same is to be said, none of them taken."""
    return (Rule(section, key, fate, why) for key in keys)
