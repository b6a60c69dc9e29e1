"""Cloud Scheduler 1: cloud_resources.conf and cloud_scheduler.conf become one class on several clouds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath

from updraft.errors import ConfigError, UsageError
from updraft.importers.formats import jsons, numbers
from updraft.importers.formats.faults import collect
from updraft.importers.formats.reading import Form, Source, Value, values
from updraft.importers.output.classdraft import ClassDraft, by_idle, section_of
from updraft.importers.output.drafts import CLOUD, DRIVERS, CloudDraft, Site, listed, plain_name, spelled
from updraft.importers.output.report import Fate, Row
from updraft.importers.output.result import Result, Section, Setting
from updraft.importers.output.rules import Rule
from updraft.importers.output.userdata import layers
from updraft.importers.programs.cloudsteps import COMMON, Step, drafted, idle
from updraft.importers.programs.cs1_rules import CLOUD_SCHEDULER

MINUTE = 60.0
DEFAULTS = "DEFAULT"  # the section of an INI file whose values all others have
DEFAULT_TYPE = "default"
REGISTER = 15 * MINUTE  # condor_register_time_limit, where the file doesn't say it
SECONDS_FROM = 300  # nobody waits for a machine for five hours
LONGEST_IDLE = 3600.0  # max_keepalive, where the file doesn't say it
LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(slots=True)
class Asked:
    """What cloud_scheduler.conf says of the class and of the pool, as it comes together."""

    site: Site
    sources: Sequence[Source]
    worker: ClassDraft = field(default_factory=lambda: ClassDraft(DEFAULT_TYPE))
    pool: dict[str, Setting] = field(default_factory=dict)
    users: dict[str, Section] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    label: str = ""  # the VMType of its jobs
    ceiling: float = LONGEST_IDLE
    register: float | None = None


def made(sources: Sequence[Source], pool: str) -> tuple[Result, list[Row]]:
    """All that the files come to. Raises ConfigError that names every impossible value."""
    site = Site(CLOUD_SCHEDULER)
    found = [value for part in collect(values, sources) for value in part]
    files = {source.name: source.form for source in sources}
    asked = Asked(site, sources)
    _clouds(site, [value for value in found if files[value.file] is Form.RESOURCES])
    if not site.served:
        site.faults.add(_no_cloud(files))
    site.faults.settle()
    _extras(asked)
    for value in (value for value in found if files[value.file] is Form.SCHEDULER):
        rule = site.rule(value.section, value.key)
        site.handle(value, rule, _step(asked, rule))
    site.faults.settle()
    for source in sources:
        if source.form is Form.USER_DATA:
            _user_data(asked, source)
    _class_times(asked)
    for what, fate, text in CLOUD_SCHEDULER.notes:
        site.note(what, fate, text)
    result = Result(
        files=tuple(files),
        pool=pool or CLOUD_SCHEDULER.pool,
        clouds={name: cloud.section for name, cloud in site.served.items()},
        classes={draft.name: section_of(site, draft) for draft in by_idle(site, asked.worker, asked.label)},
        settings=asked.pool,
        users=asked.users,
    )
    return result, list(dict.fromkeys(site.rows))  # a value of [DEFAULT] has its row once


def _no_cloud(files: Mapping[str, Form]) -> UsageError:
    name = next((name for name, form in files.items() if form is Form.RESOURCES), "")
    if not name:
        return UsageError("cloud_scheduler.conf names no clouds; name the cloud_resources.conf as well")
    return UsageError(f"{name}: no driver here speaks to any of its clouds; updraft has openstack and ec2")


# ---------------------------------------------------------------------------------------------- the clouds


def _clouds(site: Site, found: Sequence[Value]) -> None:
    common = [value for value in found if value.section == DEFAULTS]
    for section in dict.fromkeys(value.section for value in found if value.section != DEFAULTS):
        own = [value for value in found if value.section == section]
        by_key = {value.key: value for value in (*common, *own)}
        kind = by_key["cloud_type"].text if "cloud_type" in by_key else ""
        driver = "ec2" if kind.lower() == "openstack" else DRIVERS.get(kind.lower(), "")
        cloud = drafted(site, section, kind, driver, by_key)
        if not driver:
            _left_out(site, section, by_key.get("cloud_type"))
        # The order matters: the region of an endpoint, and the ceiling that counts.
        for value in sorted(by_key.values(), key=lambda value: value.key == "regions"):
            rule = site.rule(CLOUD, value.key)
            if driver or (value.key != "cloud_type" and value.section != DEFAULTS):
                step = STEPS[rule.target] if driver and rule and rule.target else None
                site.handle(value, rule, partial(step, site, cloud) if step else None)


def _left_out(site: Site, section: str, value: Value | None) -> None:
    known = "OpenStackNative, OpenStack, AmazonEC2 and Eucalyptus"
    if value is None:
        site.note(section, Fate.LOOK, f"it has no cloud_type, and was left out; there are {known}")
    else:
        site.say(value, Fate.LOOK, f"no driver here speaks to it: the cloud is left out. There are {known}")


def _minutes(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    idle(site, cloud, value, rule, MINUTE)


STEPS: Mapping[str, Step] = {**COMMON, "idle_limit": _minutes}


# ------------------------------------------------------------------------------- cloud_scheduler.conf itself


def _step(asked: Asked, rule: Rule | None) -> Callable[[Value, Rule], None]:
    steps: Mapping[str, Callable[[Asked, Value, Rule], None]] = {
        "resources": partial(_file, Form.RESOURCES),
        "user_limits": partial(_file, Form.LIMITS),
        "aliases": partial(_file, Form.ALIASES),
        "default_yaml": partial(_file, Form.USER_DATA),
        "layer": _layer,
        "collector": _collector,
        "lifetime": _lifetime,
        "register": _register,
        "keepalive_ceiling": _ceiling,
        "high_priority": _high_priority,
        "vmtype": _vmtype,
        "images": _images,
        "flavor": _flavor,
        "flavors": _flavors,
        "network": _network,
        "targets": _targets,
    }
    return partial(steps[rule.target] if rule and rule.target else _nothing, asked)


def _nothing(_asked: Asked, _value: Value, _rule: Rule) -> None:
    """For a key that isn't taken."""


def _file(form: Form, asked: Asked, value: Value, _rule: Rule) -> None:
    """A file that the configuration names: what came of it is said in its own rows."""
    alike = [source for source in asked.sources if source.form is form]
    name = PurePath(value.text).name
    source = next((one for one in alike if one.name == name or form is not Form.USER_DATA), None)
    if source is not None:
        asked.site.say(value, Fate.TAKEN, f"{source.name}\nread with this file")
    else:
        text = "the file isn't beside this one: name it with the others, and it is read"
        asked.site.say(value, Fate.LOOK, text)


def _layer(asked: Asked, value: Value, _rule: Rule) -> None:
    asked.site.say(
        value,
        Fate.LOOK,
        'put the file beside updraft.toml and name it in [[classes.…]] layers; the type behind a ":" '
        "isn't needed",
    )


def _collector(asked: Asked, value: Value, rule: Rule) -> None:
    first = value.text.split("\n")[0].strip()
    text = Value(
        value.file, value.line, value.section, value.key, first if "://" in first else f"http://{first}"
    )
    plain, _ = numbers.address(text)
    host = plain.partition("://")[2].partition("/")[0]
    if host.rsplit(":", 1)[0].strip("[]") in LOCAL:
        asked.site.say(value, Fate.NOT_NEEDED, "this host: HTCondor's own configuration says it")
        return
    asked.pool["collector"] = Setting(host, value.key)
    asked.site.taken(value, rule, spelled(host))


def _lifetime(asked: Asked, value: Value, rule: Rule) -> None:
    minutes = numbers.duration(value)
    if not minutes:
        text = '0 was no lifetime: it is "7d" here unless you write another; no machine lives for ever'
        asked.site.say(value, Fate.REPLACED, text)
        return
    text = numbers.in_words(minutes * MINUTE)
    asked.worker.settings["lifetime"] = Setting(text, value.key)
    asked.site.taken(value, rule, spelled(text))


def _register(asked: Asked, value: Value, rule: Rule) -> None:
    """In minutes; so many of them that no machine is waited for so long are taken for seconds."""
    number = numbers.duration(value)
    if not number:
        text = (
            f"0 ended each machine as it started; here it has {numbers.in_words(REGISTER)}, the old default"
        )
        asked.site.say(value, Fate.LOOK, text)
        return
    asked.register = number * (MINUTE if number < SECONDS_FROM else 1)
    if number >= SECONDS_FROM:
        both = [spelled(numbers.in_words(number * unit)) for unit in (1, MINUTE)]
        text = (
            f"boot_deadline = {both[0]}\nCloud Scheduler took it for minutes, which would be {both[1]}; it "
            "is taken for seconds, as its code had its default of 15 minutes (900). Write what you meant"
        )
        asked.site.say(value, Fate.LOOK, text)
        return
    asked.site.taken(value, rule, spelled(numbers.in_words(asked.register)))


def _ceiling(asked: Asked, value: Value, rule: Rule) -> None:
    asked.ceiling = max(0, numbers.whole(value)) * MINUTE
    if not asked.ceiling:
        text = (
            'no machine was kept for want of work; here each may idle for idle_limit, "10m", and no job asks '
            "for longer. Shorter: write idle_limit"
        )
        asked.site.say(value, Fate.REPLACED, text)
        return
    asked.site.taken(value, rule, spelled(numbers.in_words(asked.ceiling)))


def _high_priority(asked: Asked, value: Value, rule: Rule) -> None:
    if not numbers.yes(value):
        asked.site.say(value, Fate.NOT_NEEDED, "nobody's counts, unless high_priority_users names somebody")
        return
    asked.pool["high_priority_users"] = Setting(["*"], value.key)
    asked.site.taken(value, rule, spelled(["*"]), ": everybody's, as before")


def _vmtype(asked: Asked, value: Value, rule: Rule) -> None:
    text = value.text.strip("\"'")
    asked.label, asked.worker.name = text, plain_name(text, DEFAULT_TYPE)
    if asked.worker.name != text:
        asked.worker.settings["vm_types"] = Setting([text], value.key)
    asked.site.taken(value, rule, spelled(text))


def _pairs(asked: Asked, value: Value) -> dict[str, str]:
    """`cloud:value, …` or one value, by the name of the cloud; "" for all that aren't named."""
    found: dict[str, str] = {}
    for part in listed(value.text):
        where, colon, text = part.rpartition(":")
        if ":" in where or not text.strip():
            raise ConfigError(f"{value.place} is neither one value nor cloud:value pairs with commas between")
        names = _clouds_called(asked, where.strip()) if colon and where.strip() != "default" else [""]
        if not names:
            asked.site.say(value, Fate.LOOK, f"no cloud here is called {where.strip()}, or it was left out")
        found.update(dict.fromkeys(names, text.strip()))
    return found


def _clouds_called(asked: Asked, text: str) -> list[str]:
    """The clouds that a name, a host's name or an alias stands for; none for a name that isn't known."""
    low = text.lower()
    expanded = next((clouds for name, clouds in asked.aliases.items() if name.lower() == low), [text])
    wanted = {one.lower() for one in expanded}
    return [
        name
        for name, cloud in asked.site.served.items()
        if {name.lower(), cloud.text("host").lower()} & wanted or _old_name(cloud.values) in wanted
    ]


def _old_name(values: Mapping[str, Value]) -> str:
    return next((value.section.lower() for value in values.values() if value.section != DEFAULTS), "")


def _images(asked: Asked, value: Value, rule: Rule) -> None:
    found = _pairs(asked, value)
    for name, cloud in asked.site.served.items():
        text = found.get(name, found.get("", ""))
        if text:
            cloud.image = Setting(text, value.key)
    asked.site.taken(value, rule, spelled(value.text))


def _flavor(asked: Asked, value: Value, rule: Rule) -> None:
    _each_flavor(asked, value, {"": value.text}, keep=True)
    asked.site.taken(value, rule, spelled([value.text]))


def _flavors(asked: Asked, value: Value, rule: Rule) -> None:
    _each_flavor(asked, value, _pairs(asked, value), keep=False)
    asked.site.taken(value, rule, spelled(value.text))


def _each_flavor(asked: Asked, value: Value, found: Mapping[str, str], *, keep: bool) -> None:
    for name, cloud in asked.site.served.items():
        text = found.get(name, found.get("", ""))
        if text and not (keep and "flavors" in cloud.settings):
            cloud.settings["flavors"] = Setting([text], value.key)


def _network(asked: Asked, value: Value, rule: Rule) -> None:
    clouds = [cloud for cloud in asked.site.served.values() if cloud.driver == "openstack"]
    for cloud in clouds:
        cloud.settings["networks"] = Setting([value.text], value.key)
    if clouds:
        asked.site.taken(value, rule, spelled([value.text]), "; it must be there on each of them")
    else:
        asked.site.say(
            value, Fate.NOT_NEEDED, "none of the clouds is OpenStack's, and for EC2 it was ignored"
        )


def _targets(asked: Asked, value: Value, rule: Rule) -> None:
    asked_for = listed(value.text)
    for text in asked_for:
        if not _clouds_called(asked, text):
            asked.site.say(value, Fate.LOOK, f"no cloud here is called {text}, or it was left out")
    found = list(dict.fromkeys(name for text in asked_for for name in _clouds_called(asked, text)))
    if not found:
        return
    asked.worker.clouds = found
    others = [name for name in asked.site.served if name not in found]
    asked.site.taken(value, rule, spelled(found))
    if others:
        text = f"only jobs that named them went to {', '.join(others)}: write a class of its own for them"
        asked.site.say(value, Fate.LOOK, text)


# ------------------------------------------------------------------------------------- what goes with them


def _extras(asked: Asked) -> None:
    """The files that go with the two: users' limits, aliases."""
    for source in asked.sources:
        if source.form is Form.LIMITS:
            _user_limits(asked, source)
        elif source.form is Form.ALIASES:
            _aliases(asked, source)


def _user_limits(asked: Asked, source: Source) -> None:
    for user, most in jsons.limits(source.text).items():
        row = Value(source.name, 0, "", user, str(most))
        if most < 0:
            asked.site.faults.add(UsageError(f"{source.name}: {user}: {most} is no count"))
            continue
        asked.users[user] = Section({"machines": Setting(most, source.name)})
        asked.site.say(row, Fate.TAKEN, f"[users.{user}] machines = {most}")


def _aliases(asked: Asked, source: Source) -> None:
    asked.aliases = jsons.aliases(source.text)
    for alias in asked.aliases:
        names = _clouds_called(asked, alias)
        text = (
            "a name for several clouds isn't known here. It is read where this configuration uses it; in "
            "submit "
            f'files write the clouds: +TargetClouds = "{",".join(names)}"'
        )
        asked.site.say(Value(source.name, 0, "", alias, ""), Fate.LOOK, text)


def _user_data(asked: Asked, source: Source) -> None:
    value = Value(source.name, 0, "", "user-data", "")
    found = layers(source.text, asked.site.secrets)
    asked.worker.add_user_data(asked.site, value, source.text, found)


def _class_times(asked: Asked) -> None:
    """What holds for machines on every cloud: how long they may idle, and take to join."""
    site, worker = asked.site, asked.worker
    for cloud in site.served.values():
        if cloud.idle is not None and cloud.idle > asked.ceiling:
            cloud.idle = asked.ceiling or None
    if not any("vm_keep_alive" in cloud.values for cloud in _used(site, worker)):
        text = 'no file says it, and machines went at once; here they may idle for idle_limit, "10m"'
        site.note("vm_keep_alive", Fate.REPLACED, text)
    if asked.ceiling:
        worker.settings["keep_alive_max"] = Setting(numbers.in_words(asked.ceiling), "max_keepalive")
    more = [name for cloud in _used(site, worker) for name in listed(cloud.text("networks"))[1:]]
    if more:
        worker.settings["networks_allowed"] = Setting(list(dict.fromkeys(more)), "networks")
    boot = max((cloud.boot for cloud in _used(site, worker)), default=0.0)
    if asked.register is not None or boot:
        seconds = (REGISTER if asked.register is None else asked.register) + boot
        origin = "condor_register_time_limit" + (" and boot_timeout" if boot else "")
        worker.settings["boot_deadline"] = Setting(numbers.in_words(seconds), origin)


def _used(site: Site, worker: ClassDraft) -> Iterator[CloudDraft]:
    return (cloud for name, cloud in site.served.items() if worker.clouds is None or name in worker.clouds)
