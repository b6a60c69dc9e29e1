"""csv2: an exported list of clouds, with group defaults, metadata and aliases where they are exported too."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from updraft.errors import UsageError
from updraft.importers.formats import jsons, numbers
from updraft.importers.formats.faults import collect
from updraft.importers.formats.jsons import Record
from updraft.importers.formats.reading import Form, Source, Value
from updraft.importers.output.classdraft import ClassDraft, by_idle, section_of
from updraft.importers.output.drafts import (
    CLOUD,
    CREDENTIALS,
    CloudDraft,
    Site,
    listed,
    plain_name,
    plain_pool,
    spelled,
)
from updraft.importers.output.report import Fate, Row
from updraft.importers.output.result import Result, Setting
from updraft.importers.output.rules import Rule
from updraft.importers.output.userdata import layers
from updraft.importers.programs.cloudsteps import COMMON, Step, drafted, idle
from updraft.importers.programs.csv2_rules import CSV2, GROUP, METADATA

KINDS = {"openstack": "openstack", "amazon": "ec2"}
LEAST_IDLE = 120.0  # csv2 never kept a machine for less
# The group's columns that hold for each of its clouds that has none of its own.
CASCADE = ("vm_flavor", "vm_image", "vm_keep_alive", "vm_keyname", "vm_network", "vm_security_groups")


@dataclass(slots=True)
class Export:
    """All records of all files, and what they come to."""

    site: Site
    found: Sequence[tuple[str, Record]]
    groups: dict[str, ClassDraft] = field(default_factory=dict)
    clouds_of: dict[str, list[str]] = field(default_factory=dict)
    pool: dict[str, Setting] = field(default_factory=dict)

    def of(self, table: str) -> list[tuple[str, Record]]:
        """The records of one table, each with the name of its file."""
        return [(file, record) for file, record in self.found if record.table == table]

    def group(self, name: str) -> ClassDraft:
        """The class of a group."""
        return self.groups.setdefault(
            name, ClassDraft(plain_name(name, "default"), attributes={"group_name": name} if name else {})
        )


def made(sources: Sequence[Source], pool: str) -> tuple[Result, list[Row]]:
    """All that the exports come to. Raises ConfigError that names every impossible value."""

    def read(source: Source) -> list[tuple[str, Record]]:
        return [(source.name, record) for record in jsons.records(source.name, source.text)]

    exports = [source for source in sources if source.form is Form.CSV2]
    site = Site(CSV2)
    export = Export(site, [record for part in collect(read, exports) for record in part])
    for file, record in export.of("cloud"):
        _cloud(export, file, record)
    if not site.served:
        site.faults.add(_no_cloud(export, exports))
    site.faults.settle()
    for file, record in export.of("group"):
        _group(export, file, record)
    _metadata(export, sources)
    _finish(export)
    site.faults.settle()
    return _result(export, tuple(source.name for source in sources), pool), site.rows


def _result(export: Export, files: tuple[str, ...], pool: str) -> Result:
    site = export.site
    whole = (*export.groups.values(), *_aliases(export))
    names = {draft.name for draft in whole}
    drafts = [one for draft in whole for one in by_idle(site, draft, taken=names)]
    for what, fate, text in CSV2.notes:
        site.note(what, fate, text)
    only = next(iter(export.groups), "") if len(export.groups) == 1 else ""
    return Result(
        files=files,
        pool=pool or plain_pool(only, CSV2.pool),
        clouds={name: cloud.section for name, cloud in site.served.items()},
        classes={draft.name: section_of(site, draft) for draft in drafts},
        settings=export.pool,
    )


def _no_cloud(export: Export, exports: Sequence[Source]) -> UsageError:
    name = exports[0].name
    if not export.of("cloud"):
        return UsageError(f"{name} lists no clouds; export those as well (`cloudscheduler cloud list`)")
    return UsageError(f"{name}: no driver here speaks to any of its clouds; updraft has openstack and ec2")


# ---------------------------------------------------------------------------------------------- the clouds


def _cloud(export: Export, file: str, record: Record) -> None:
    site, columns = export.site, record.columns
    name, group = columns.get("cloud_name", ""), columns.get("group_name", "")
    several = len({one.columns.get("group_name") for _, one in export.of("cloud")}) > 1
    title = f"{group}-{name}" if several and group else name
    unset = {key for key in columns if key.endswith("vm_keep_alive") and _short(columns[key])}
    found = {
        key: Value(file, record.line, title, key, "" if key in unset else text)
        for key, text in columns.items()
    }
    driver = KINDS.get(columns["cloud_type"].lower(), "")
    cloud = drafted(site, title, columns["cloud_type"], driver, found)
    if driver:
        export.group(group)
        export.clouds_of.setdefault(group, []).append(cloud.name)
    for value in sorted(found.values(), key=lambda value: value.key == "region"):  # after the endpoint
        rule = site.rule(CLOUD, value.key)
        if value.key == "cloud_type" and not driver:
            text = "no driver here speaks to it: the cloud is left out. There are openstack and amazon"
            site.say(value, Fate.LOOK, text)
            continue
        if value.key in unset:
            text = "csv2 passed over less than 120 s: the group's counts, where that is as long"
            site.say(value, Fate.REPLACED, text)
            continue
        own = value.key.removeprefix("cascading_")
        if own != value.key and cloud.text(own):
            site.say(value, Fate.NOT_NEEDED, f"the cloud has its own: {own}")
            continue
        step = STEPS[rule.target] if driver and rule and rule.target else None
        site.handle(value, rule, partial(step, site, cloud) if step else None)


def _short(text: str) -> bool:
    """Whether csv2 passed over a keep-alive, and took the group's, or its least."""
    return text.lstrip("-").isdigit() and int(text) < LEAST_IDLE


def _keep_alive(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    seconds = max(LEAST_IDLE, numbers.duration(value))
    idle(site, cloud, Value(value.file, value.line, value.section, value.key, str(seconds)), rule)


def _username(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """Of an Amazon cloud it is the access key."""
    if cloud.driver == "ec2":
        site.say(value, Fate.SECRET, f"its access key: put it into {CREDENTIALS}, under [{cloud.name}]")
    else:
        COMMON["username"](site, cloud, value, rule)


def _exclusions(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """All flavors but these, also those that are yet to come."""
    out = listed(value.text)
    if cloud.text("vm_flavor", "cascading_vm_flavor"):
        site.say(value, Fate.NOT_NEEDED, "the cloud has a flavor of its own")
        return
    patterns = ["*", *(f"!{name}" for name in out)]
    cloud.settings["flavors"] = Setting(patterns, value.key)
    site.taken(value, rule, spelled(patterns))


def _in_group(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    site.taken(value, rule, spelled(value.text))


STEPS: Mapping[str, Step] = {
    **COMMON,
    "idle_limit": _keep_alive,
    "exclusions": _exclusions,
    "username": _username,
    "group": _in_group,
}


# ---------------------------------------------------------------------------------------------- the groups


def _group(export: Export, file: str, record: Record) -> None:
    site, name = export.site, record.columns["group_name"]
    clouds = [site.clouds[cloud] for cloud in export.clouds_of.get(name, ())]
    for key, text in record.columns.items():
        value, rule = Value(file, record.line, name, key, text), site.rule(GROUP, key)
        if key in CASCADE and rule is not None and text:
            _cascade(export, clouds, value, rule)
        else:
            site.handle(value, rule, partial(_group_step(rule), export))


def _group_step(rule: Rule | None) -> Callable[[Export, Value, Rule], None]:
    return _collector if rule and rule.target == "collector" else _class_name


def _class_name(export: Export, value: Value, rule: Rule) -> None:
    export.site.taken(value, rule, spelled(value.text))


def _collector(export: Export, value: Value, rule: Rule) -> None:
    before = export.pool.get("collector")
    if before is not None and before.value != value.text:
        text = (
            f"another group has {before.value}: one updraft serves one pool; make a second one for this group"
        )
        export.site.say(value, Fate.LOOK, text)
        return
    export.pool["collector"] = Setting(value.text, value.key)
    export.site.taken(value, rule, spelled(value.text))


def _cascade(export: Export, clouds: Sequence[CloudDraft], value: Value, rule: Rule) -> None:
    """A group's default, for each of its clouds without one of its own."""
    wanting = [cloud for cloud in clouds if not cloud.text(value.key, f"cascading_{value.key}")]
    if not wanting:
        export.site.say(value, Fate.NOT_NEEDED, "each of its clouds says it already")
        return
    rows = len(export.site.rows)
    for cloud in wanting:
        export.site.faults.attempt(partial(STEPS[rule.target], export.site, cloud, value, rule))
    del export.site.rows[rows + 1 :]


def _metadata(export: Export, sources: Sequence[Source]) -> None:
    """Metadata of groups as layers, by their priorities; files that are named come after them."""

    def rank(one: tuple[str, Record]) -> tuple[int, str]:
        priority = one[1].columns.get("priority", "")
        return (int(priority) if priority.lstrip("-").isdigit() else 0, one[1].columns["metadata_name"])

    site = export.site
    for file, record in sorted(export.of("metadata"), key=rank):
        columns = record.columns
        value = Value(file, record.line, METADATA, columns["metadata_name"], columns["metadata"])
        group = export.groups.get(columns.get("group_name", ""))
        if columns.get("enabled", "1").lower() in ("0", "false"):
            site.say(value, Fate.NOT_NEEDED, "it is disabled")
        elif columns.get("cloud_name"):
            text = (
                f"it is for {columns['cloud_name']} alone: layers are a class's, so write a class of its own"
            )
            site.say(value, Fate.LOOK, text)
        elif group is None:
            site.say(value, Fate.NOT_NEEDED, "its group has no cloud here")
        else:
            group.add_user_data(site, value, value.text, layers(value.text, site.secrets))
    for source in sources:
        if source.form is Form.USER_DATA:
            value = Value(source.name, 0, "", "user-data", "")
            for group in export.groups.values():
                group.add_user_data(site, value, source.text, layers(source.text, site.secrets))


def _finish(export: Export) -> None:
    """Each group has its clouds; where there is only one group, that is all of them."""
    for name, group in export.groups.items():
        clouds = export.clouds_of[name]
        group.clouds = None if len(clouds) == len(export.site.served) else clouds


def _aliases(export: Export) -> list[ClassDraft]:
    """A class for each alias, alike but for its clouds and what its machines advertise."""
    site, members = export.site, dict[tuple[str, str], list[str]]()
    for file, record in export.of("alias"):
        columns = record.columns
        key = (columns.get("group_name", ""), columns["alias_name"])
        names = listed(columns.get("clouds", "") or columns.get("cloud_name", ""))
        there = [name for text in names for name in _called(export, key[0], text)]
        members[key] = list(dict.fromkeys([*members.get(key, []), *there]))
        value = Value(file, record.line, "alias", key[1], key[1])
        text = f"[classes.{plain_name(key[1], 'alias')}] clouds = {spelled(members[key])}"
        site.say(value, Fate.TAKEN if there else Fate.LOOK, text if there else "none of its clouds is here")
    drafts: list[ClassDraft] = []
    for (group, alias), clouds in members.items():
        if clouds and group in export.groups:
            like = export.groups[group]
            attributes = {**like.attributes, "target_alias": alias}
            taken = {draft.name for draft in (*export.groups.values(), *drafts)}
            name = plain_name(alias, "alias")
            name = f"{plain_name(group, 'group')}-{name}" if name in taken else name
            drafts.append(ClassDraft(name, clouds, dict(like.settings), attributes, list(like.parts)))
    return drafts


def _called(export: Export, group: str, text: str) -> list[str]:
    wanted = {text.lower(), f"{group}-{text}".lower()}
    return [name for name in export.clouds_of.get(group, ()) if name.lower() in wanted]
