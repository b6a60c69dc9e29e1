"""What the keys of one cloud become, in Cloud Scheduler's and in csv2's words alike."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from updraft.errors import ConfigError
from updraft.importers.formats import numbers
from updraft.importers.formats.reading import Value
from updraft.importers.output.drafts import CloudDraft, Site, listed, named, spelled, unlimited
from updraft.importers.output.report import Fate
from updraft.importers.output.result import Setting
from updraft.importers.output.rules import Rule

Step = Callable[[Site, CloudDraft, Value, Rule], None]
LARGEST_VOLUME = 1 << 20  # GB
AMAZON = ".amazonaws.com"
EC2_PATH = {"openstack": "/services/Cloud", "eucalyptus": "/services/Eucalyptus"}


def put(setting: str, make: Callable[[Value], Any]) -> Step:
    """A step that writes one setting of the cloud: `make` reads its value."""

    def step(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
        made = make(value)
        cloud.settings[setting] = Setting(made, value.key)
        site.taken(value, rule, spelled(made))

    return step


def login(name: str, *, entry: bool = False) -> Step:
    """A step that writes a key of the cloud's entry in clouds.yaml; only OpenStack has one."""

    def step(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
        if cloud.driver != "openstack":
            site.say(value, Fate.NOT_NEEDED, "the endpoint speaks EC2: its access key says whose it is")
            return
        (cloud.entry if entry else cloud.login)[name] = value.text
        site.say(value, Fate.TAKEN, f"clouds.yaml: {name}: {spelled(value.text)}\n{rule.why}")

    return step


def kind(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """The driver; a row all the same where there is none."""
    more = ""
    if cloud.driver == "ec2" and cloud.kind.lower() == "openstack":
        more = ". OpenStack has given up that interface: the driver openstack is the way to go on"
    site.taken(value, rule, spelled(cloud.driver), more)


def host(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """The EC2 endpoint out of host, port and whether it is encrypted; none for Amazon."""
    if cloud.driver != "ec2":
        site.say(value, Fate.NOT_NEEDED, "the address in auth_url is what counts")
        return
    if value.text.endswith(AMAZON):
        site.say(value, Fate.NOT_NEEDED, "Amazon's own: the region says which")
        return
    secure = cloud.text("secure_connection").lower() == "true"
    port = cloud.text("port") or "8773"
    path = EC2_PATH.get(cloud.kind.lower(), "/")
    scheme = "https" if secure else "http"
    whole = f"{scheme}://{value.text}:{port}{path}"
    plain, _ = numbers.address(Value(value.file, value.line, value.section, value.key, whole))
    cloud.settings["endpoint"] = Setting(plain, "host, port, secure_connection")
    more = "" if secure else "; without TLS anybody on the way can read and change what is asked for"
    site.taken(value, rule, spelled(plain), more)


def authurl(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """Keystone's address, in its version 3; for EC2 an endpoint."""
    if cloud.driver == "ec2" and (AMAZON in value.text or "://" not in value.text):
        site.say(value, Fate.NOT_NEEDED, "Amazon's own: the region says which")
        return
    plain, cut = numbers.address(value)
    more = "; a name, password or query in it was left out" if cut else ""
    if cloud.driver == "ec2":
        cloud.settings["endpoint"] = Setting(plain, value.key)
        site.say(value, Fate.TAKEN, f"endpoint = {spelled(plain)}\n{rule.why}{more}")
        return
    new = plain.rstrip("/").removesuffix("/v2.0") + "/v3" if plain.rstrip("/").endswith("/v2.0") else plain
    if new != plain:
        text = f"version 2 of the identity service is gone: clouds.yaml has {spelled(new)}; try it"
        site.say(value, Fate.LOOK, text)
    cloud.login["auth_url"] = new
    site.say(value, Fate.TAKEN, f"clouds.yaml: auth_url: {spelled(new)}\n{rule.why}{more}")


def regions(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """The first region, which is the one that was used."""
    first, *others = listed(value.text) or [""]
    if cloud.driver == "ec2" and "endpoint" in cloud.settings:
        site.say(value, Fate.NOT_NEEDED, "an endpoint that isn't Amazon's has one region")
        return
    cloud.settings["region"] = Setting(first, value.key)
    site.taken(value, rule, spelled(first))
    if others:
        text = f"only the first was used; write a [clouds.…] of its own for {', '.join(others)}"
        site.say(value, Fate.LOOK, text)


def network(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """The first network; EC2 has subnets instead."""
    if cloud.driver == "ec2":
        text = 'networks of an EC2 endpoint are subnets: subnets = { ZONE = "subnet-…" }, else the default\'s'
        site.say(value, Fate.NOT_NEEDED, text)
        return
    named = listed(value.text)
    if not named:
        site.say(value, Fate.NOT_NEEDED, "it names no network: the project's only one is used")
        return
    first, *others = named
    cloud.settings["networks"] = Setting([first], value.key)
    site.taken(value, rule, spelled([first]))
    if others:
        text = (
            f"only the first was used; jobs may ask for {', '.join(others)} (networks_allowed of the class)"
        )
        site.say(value, Fate.LOOK, text)


def machines(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """Machines at one time."""
    most = numbers.count(value)
    cloud.limits["machines"] = (most, value.key)
    site.taken(value, rule, str(most))


def cores(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """Cores at one time; the least of all keys that say it counts, and below 0 there is no ceiling."""
    most = unlimited(value)
    if most is None:
        site.say(value, Fate.NOT_NEEDED, "below 0 is no ceiling: the cloud's own quota is what holds")
        return
    before = cloud.limits.get("cores")
    if before is not None and int(before[0]) <= most:
        site.say(value, Fate.REPLACED, f"{before[1]} is not more, and counts")
        return
    cloud.limits["cores"] = (most, value.key)
    site.taken(value, rule, str(most))


def memory(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """MiB of memory at one time; below 0 there is no ceiling."""
    most = unlimited(value)
    if most is None:
        site.say(value, Fate.NOT_NEEDED, "below 0 is no ceiling: the cloud's own quota is what holds")
        return
    cloud.limits["memory"] = (f"{most}MiB", value.key)
    site.taken(value, rule, spelled(f"{most}MiB"))


def idle(site: Site, cloud: CloudDraft, value: Value, rule: Rule, unit: float = 1.0) -> None:
    """How long machines of this cloud may idle; the class is what has it here."""
    seconds = numbers.duration(value) * unit
    if not seconds:
        site.say(value, Fate.REPLACED, '0 let machines go at once; here they may idle for idle_limit, "10m"')
        return
    cloud.idle = seconds
    site.taken(value, rule, spelled(numbers.in_words(seconds)))


def boot(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """How long a machine may take to run, a part of the time to join."""
    if numbers.whole(value) <= 0:
        site.say(value, Fate.NOT_NEEDED, "it was no limit; condor_register_time_limit is what holds")
        return
    cloud.boot = numbers.duration(value)
    site.taken(value, rule, f"{spelled(numbers.in_words(cloud.boot))} more")


def image(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """The image on this cloud."""
    cloud.image = Setting(value.text, value.key)
    site.taken(value, rule, f"{{ {cloud.name} = {spelled(value.text)} }}")


def volume(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """A volume to boot from, as csv2 writes it: JSON with volume_type, GBs, GBs_per_core."""
    try:
        asked = json.loads(value.text)
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        raise ConfigError(f"{value.place} is not the JSON of a volume (volume_type, GBs, GBs_per_core)")
    size, per_core = _gigabytes(value, asked, "GBs"), _gigabytes(value, asked, "GBs_per_core")
    told = {"root_volume": size, "root_volume_per_core": per_core}
    if cloud.driver != "openstack" and per_core:
        text = f"{per_core} GB for each core: root_volume of ec2 is one size for all; write the largest"
        site.say(value, Fate.LOOK, text)
        told.pop("root_volume_per_core")
    for key, number in told.items():
        if number:
            cloud.settings[key] = Setting(f"{number}GiB", value.key)
            site.say(value, Fate.TAKEN, f"{key} = {spelled(f'{number}GiB')}\n{rule.why}")
    if asked.get("volume_type") and any(told.values()) and cloud.driver == "openstack":
        cloud.settings["volume_type"] = Setting(str(asked["volume_type"]), value.key)


def _gigabytes(value: Value, asked: Mapping[str, Any], key: str) -> int:
    told = asked.get(key) or 0
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told <= LARGEST_VOLUME:
        raise ConfigError(f"{value.place}: {key} is no size of a volume in GB; correct it and import again")
    return math.ceil(told)


def cacert(site: Site, cloud: CloudDraft, value: Value, rule: Rule) -> None:
    """The authority of the cloud's certificate, as a file."""
    if "BEGIN CERTIFICATE" in value.text:
        site.say(
            value, Fate.LOOK, "it holds the certificates themselves: put them into a file, and name that one"
        )
    elif cloud.driver == "ec2":
        put("ca_bundle", lambda value: value.text)(site, cloud, value, rule)
    else:
        login("cacert", entry=True)(site, cloud, value, rule)


COMMON: Mapping[str, Step] = {
    "driver": kind,
    "endpoint": host,
    "auth_url": authurl,
    "region": regions,
    "zones": put("zones", lambda value: listed(value.text)),
    "networks": network,
    "security_groups": put("security_groups", lambda value: listed(value.text)),
    "key_name": put("key_name", lambda value: value.text),
    "username": login("username"),
    "user_id": login("user_id"),
    "project": login("project_name"),
    "user_domain": login("user_domain_name"),
    "user_domain_id": login("user_domain_id"),
    "project_domain": login("project_domain_name"),
    "project_domain_id": login("project_domain_id"),
    "application_credential": login("application_credential_id"),
    "cacert": cacert,
    "machines": machines,
    "cores": cores,
    "memory": memory,
    "priority": put("priority", numbers.whole),
    "enabled": put("enabled", numbers.yes),
    "boot_deadline": boot,
    "idle_limit": idle,
    "image": image,
    "flavors": put("flavors", lambda value: listed(value.text)),
    "root_volume": volume,
}


def drafted(site: Site, text: str, cloud_kind: str, driver: str, values: Mapping[str, Value]) -> CloudDraft:
    """A new cloud of the site, under a name that updraft takes."""
    cloud = CloudDraft(named(site, text), cloud_kind, driver, values)
    site.clouds[cloud.name] = cloud
    if driver == "openstack":
        cloud.settings["os_cloud"] = Setting(cloud.name, "its name in clouds.yaml")
    elif driver == "ec2":
        cloud.settings["profile"] = Setting(cloud.name, "where its keys are")
    if cloud.name != text and values:
        first = next(iter(values.values()))
        site.say(
            Value(first.file, first.line, first.section, "(its name)", text),
            Fate.LOOK,
            f'it is [clouds.{cloud.name}] now: a name has letters, digits, "-", "_" and ".", and is '
            "given once",
        )
    return cloud
