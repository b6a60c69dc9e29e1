"""A site of several clouds as it comes together: what Cloud Scheduler and csv2 have in common."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from updraft.config.values.checks import HEADS, IMAGES
from updraft.importers.formats import numbers
from updraft.importers.formats.faults import Faults
from updraft.importers.formats.reading import Value
from updraft.importers.output.report import Fate, Row
from updraft.importers.output.result import Section, Setting
from updraft.importers.output.rules import Program, Rule
from updraft.importers.programs.onepool import types

CLOUD = "NAME"  # stands for a cloud's name in the rules
CREDENTIALS = "/root/.aws/credentials"
CLOUDS_YAML = "/etc/openstack/clouds.yaml"
DRIVERS: Mapping[str, str] = {
    "openstacknative": "openstack",
    "amazonec2": "ec2",
    "eucalyptus": "ec2",
}
ORDER = ("driver", "os_cloud", "profile", "endpoint", "region", "enabled", "priority", "limits")


@dataclass(slots=True)
class CloudDraft:
    """One cloud: `kind` as the old program calls it, `driver` empty where nothing here speaks to it.

    `login` is its entry in clouds.yaml; `idle` the seconds that its machines may idle.
    """

    name: str
    kind: str
    driver: str
    values: Mapping[str, Value]
    settings: dict[str, Setting] = field(default_factory=dict)
    limits: dict[str, tuple[int | str, str]] = field(default_factory=dict)
    login: dict[str, str] = field(default_factory=dict)
    entry: dict[str, str] = field(default_factory=dict)
    image: Setting | None = None
    idle: float | None = None
    boot: float = 0.0

    def text(self, *keys: str) -> str:
        """The first of these keys that has a value; empty where none has."""
        found = (self.values[key].text for key in keys if key in self.values)
        return next((text for text in found if text), "")

    @property
    def section(self) -> Section:
        """Its table, with what belongs into the file of credentials."""
        settings = {"driver": Setting(self.driver, f'was "{self.kind}"'), **self.settings}
        if self.limits:
            origin = ", ".join(key for _, key in self.limits.values())
            settings["limits"] = Setting({name: most for name, (most, _) in self.limits.items()}, origin)
        ordered = sorted(settings, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
        holds = types(settings.get("flavors")) if self.driver == "ec2" and "endpoint" in settings else ()
        return Section(
            {name: settings[name] for name in ordered}, above=tuple(self._credentials()), below=tuple(holds)
        )

    def _credentials(self) -> Iterable[str]:
        if self.driver == "ec2":
            yield f"Its keys belong into {CREDENTIALS} on the head (mode 0600), under [{self.name}]."
            return
        yield f"Its login belongs into {CLOUDS_YAML} on the head (mode 0600):"
        yield "clouds:"
        yield f"  {json.dumps(self.name)}:"
        login = dict(self.login)
        if "application_credential_id" in login:
            yield "    auth_type: v3applicationcredential"
            names, secret = ["auth_url", "application_credential_id"], "application_credential_secret"
        else:
            for whose in ("user_domain", "project_domain"):
                if f"{whose}_id" not in login:
                    login.setdefault(f"{whose}_name", "Default")
            names, secret = list(login), "password"
        yield "    auth:"
        for name in names:
            yield f"      {name}: {json.dumps(login.get(name, '…'), ensure_ascii=False)}"
        yield f"      {secret}: …"
        for key, value in self.entry.items():
            yield f"    {key}: {json.dumps(value)}"


@dataclass(slots=True)
class Site:
    """Everything that the files come to, and a row for each key."""

    program: Program
    clouds: dict[str, CloudDraft] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    @property
    def served(self) -> dict[str, CloudDraft]:
        """The clouds that a driver speaks to."""
        return {name: cloud for name, cloud in self.clouds.items() if cloud.driver}

    def rule(self, section: str, key: str) -> Rule | None:
        """The rule for a key; Cloud Scheduler and csv2 don't mind the case of its letters."""
        low = key.lower()
        return next(
            (rule for rule in self.program.rules if rule.section == section and rule.key.lower() == low), None
        )

    def say(self, value: Value, fate: Fate, text: str) -> None:
        """One row about a value of a file."""
        self.rows.append(Row(value.file, value.section, value.key, fate, text, value.line or None))

    def note(self, what: str, fate: Fate, text: str) -> None:
        """One row about what no file says."""
        self.rows.append(Row("", "", what, fate, text))

    def taken(self, value: Value, rule: Rule, setting: str, more: str = "") -> None:
        """The row of a value that was taken: the setting, and below it why."""
        name = rule.becomes.rpartition("] ")[2]
        self.say(value, Fate.TAKEN, f"{name} = {setting}\n{rule.why}{more}")

    def handle(self, value: Value, rule: Rule | None, step: Callable[[Value, Rule], None] | None) -> None:
        """One value: its row, and `step` for one that is taken. A fault of it is kept for the end."""
        if rule is None:
            known = f"updraft and {self.program.name} know no such key; it was left out"
            self.say(value, Fate.UNKNOWN, known)
        elif rule.fate is Fate.SECRET:
            self.secrets.append(value.text)
            fate = Fate.SECRET if value.text else Fate.NOT_NEEDED
            self.say(value, fate, rule.why if value.text else "it is empty")
        elif rule.fate is not Fate.TAKEN:
            self.say(value, rule.fate, rule.why)
        elif step is None:
            self.say(value, Fate.NOT_NEEDED, "no driver speaks to its cloud, which was left out")
        elif not value.text:
            self.say(value, Fate.NOT_NEEDED, "it is empty")
        else:
            self.faults.attempt(partial(step, value, rule))


def plain_name(text: str, other: str) -> str:
    """A name that updraft takes, as near to the old one as can be; `other` where nothing of it is left."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text).strip("-._")[:60] or other


def plain_pool(text: str, other: str) -> str:
    """A name that a pool may have, as near to the old one as can be; `other` where nothing of it is left."""
    name = plain_name(text, other)
    return name.replace(".", "-") if name.endswith((HEADS, IMAGES)) else name


def named(site: Site, text: str) -> str:
    """A name that updraft takes, as near to the old one as can be, and given to nobody yet."""
    plain = plain_name(text, "cloud")
    name, number = plain, 2
    while name in site.clouds:
        name, number = f"{plain[:56]}-{number}", number + 1
    return name


def spelled(value: object) -> str:
    """A value as it stands in the file, for the report."""
    if isinstance(value, list):
        return f"[{', '.join(map(spelled, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def listed(text: str) -> list[str]:
    """The names of a list with commas."""
    return list(dict.fromkeys(part.strip() for part in text.strip("\"'[] ").split(",") if part.strip()))


def unlimited(value: Value) -> int | None:
    """A ceiling, None for any number below 0."""
    number = numbers.whole(value)
    return None if number < 0 else number
