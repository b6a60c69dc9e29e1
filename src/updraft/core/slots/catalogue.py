"""The ad of a slot that was never seen: from what a cloud sells, or from the last real ad of its like."""

from collections.abc import Mapping
from dataclasses import replace

from classad2 import ClassAd, ExprTree, Value, quote

from updraft.core.matching.expressions import evaluated
from updraft.core.model import CloudOffer, Kind, Resources, of_amounts
from updraft.core.model.variants import PLAIN, Variant
from updraft.core.settings import WorkerClass
from updraft.core.slots.kinds import LARGEST, RESOURCES, custom_names
from updraft.core.slots.terms import TAKES, bought, says, takes

# What a worker says of itself; the startd of a worker is configured with the same names.
ATTRIBUTES = {
    "pool": "UpdraftPool",
    "class": "UpdraftClass",
    "cloud": "UpdraftCloud",
    "zone": "UpdraftZone",
    "image": "UpdraftImage",
    "flavor": "UpdraftFlavor",
    "market": "UpdraftMarket",
    "generation": "UpdraftGeneration",
}

# A guess, until a real machine was seen: a kernel and firmware keep about a sixteenth of a small machine's
# memory (at most 1 GiB), and the image with its file system's own needs about 4 GiB of the disk. Of a small
# disk half is believed in: what can't run anything is never bought, and nobody would ever see what it has.
MEMORY_SHARE_KEPT = 16
MEMORY_KEPT_AT_MOST = 1024
DISK_KEPT = 4 * 1024 * 1024

_METHODS = "box,data,dav,davs,file,ftp,gdrive,http,https,onedrive,s3,gs"
_ABILITIES = (
    "HasTDP",
    "HasOsUser",
    "HasReconnect",
    "HasJobDeferral",
    "HasFileTransfer",
    "HasJICLocalStdin",
    "HasJICLocalConfig",
    "HasJobNetworking",
    "HasPerFileEncryption",
    "HasJobTransferPlugins",
    "HasTransferInputRemaps",
    "HasSelfCheckpointTransfers",
)
_MACHINE_RESOURCES = ("Cpus", "Memory", "Disk", "Swap", "GPUs")
_PLATFORM: Mapping[str, str] = {
    "MyType": '"Machine"',
    "TargetType": '"Job"',
    "OpSys": '"LINUX"',
    "OpSysLegacy": '"LINUX"',
    "OpSysName": '"Debian"',
    "OpSysShortName": '"Debian"',
    "OpSysAndVer": '"Debian13"',
    "OpSysMajorVer": "13",
    "OpSysVer": "1300",
    "OpSysLongName": '"Debian GNU/Linux 13"',
    "CondorVersion": '"$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $"',
    "CondorPlatform": '"$CondorPlatform: X86_64-Debian_13 $"',
    "State": '"Unclaimed"',
    "Activity": '"Idle"',
    "Rank": "0.0",
    "CurrentRank": "0.0",
    "SlotWeight": "Cpus",
    "NumDynamicSlots": "0",
    "MaxJobRetirementTime": "0",
    "HasFileTransferPluginMethods": f'"{_METHODS}"',
    "HasCommonFilesTransfer": "2",
    "HasVM": "false",
    "HasSshd": "false",
    "StarterAbilityList": f'"{",".join(_ABILITIES)}"',
    "MachineResources": quote(" ".join(_MACHINE_RESOURCES)),
    "Start": "true",
    "Requirements": "Start && WithinResourceLimits",
    # What a startd of this version checks with its own quantities; shared input files are not considered.
    "WithinResourceLimits": "MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus"
    " && MY.Memory > 0 && TARGET.RequestMemory <= MY.Memory"
    " && MY.Disk > 0 && TARGET.RequestDisk <= MY.Disk"
    " && (TARGET.RequestGPUs =?= undefined || MY.GPUs >= TARGET.RequestGPUs)",
    **dict.fromkeys(_ABILITIES, "true"),
}


def usable(sold: Resources) -> Resources:
    """The resources that a startd will find on a machine that a cloud sells as `sold`: a guess, rather
    too little.
    """
    memory = sold.memory - min(sold.memory // MEMORY_SHARE_KEPT, MEMORY_KEPT_AT_MOST)
    return Resources(sold.cpus, memory, sold.disk - min(sold.disk // 2, DISK_KEPT), sold.gpus)


def outfitted(machine: Resources, worker_class: WorkerClass) -> Resources:
    """A machine with the custom resources that those of its class have."""
    if not worker_class.resources:
        return machine
    custom = sorted((name.lower(), amount) for name, amount in worker_class.resources.items())
    return replace(machine, custom=tuple(custom))


def imagine(
    worker_class: WorkerClass,
    offer: CloudOffer,
    image: str,
    pool: str,
    key: str = "",
    variant: Variant = PLAIN,
) -> Kind:
    """The kind of slot that a machine bought as `offer` would bring, as far as the catalogue can tell.

    `key` is the kind's key where it has to equal one made from real ads, `variant` which of the class it is.
    The class's own attributes win over everything here, and its `Start` holds besides ours; a malformed one
    raises `classad2.ClassAdException`.
    """
    static = worker_class.static_slots
    whole = outfitted(usable(offer.resources), worker_class)
    one = share(whole, static) if static else whole
    ad = ClassAd()
    expressions = dict(_PLATFORM)
    expressions["Arch"] = quote(offer.arch)
    expressions["Name"] = quote("slot1@imagined")
    expressions["Machine"] = quote("imagined")
    expressions["FileSystemDomain"] = quote("imagined")
    expressions |= _quantities(one, whole, static) | _custom(worker_class)
    expressions |= _whose(worker_class, offer, image, pool)
    expressions |= _said(worker_class, offer, image, variant)
    expressions |= worker_class.attributes
    expressions["Start"] = f"({expressions['Start']}) && MY.{TAKES}"
    for name, expression in expressions.items():
        ad[name] = ExprTree(expression)
    return Kind(
        key=key or kind_name(worker_class, offer, image),
        ad=repr(ad),
        resources=one,
        partitionable=not static,
        slots=static or 1,
    )


def _whose(worker_class: WorkerClass, offer: CloudOffer, image: str, pool: str) -> dict[str, str]:
    """By what the pool tells whose machine it is."""
    says = {
        "pool": pool,
        "class": worker_class.name,
        "cloud": offer.cloud,
        "zone": offer.zone,
        "image": image,
        "flavor": offer.flavor,
        "market": offer.market,
        "generation": worker_class.generation,
    }
    return {ATTRIBUTES[what]: quote(value) for what, value in says.items()}


def _said(worker_class: WorkerClass, offer: CloudOffer, image: str, variant: Variant) -> dict[str, str]:
    """What the terms of jobs are held against, and the condition."""
    found = says(offer, image, worker_class.name, variant)
    texts = {name: quote(value) if isinstance(value, str) else repr(value) for name, value in found.items()}
    return {**texts, TAKES: takes(variant)}


def kind_name(worker_class: WorkerClass, offer: CloudOffer, image: str) -> str:
    """A key for a kind that nobody has named: class, generation, cloud, image and flavor."""
    return f"{worker_class.name}/{worker_class.generation}/{offer.cloud}/{image}/{offer.flavor}"


def learned(kind_key: str, template_ad_text: str, offer: CloudOffer | None = None, slots: int = 1) -> Kind:
    """The kind that a real machine has shown: its whole ad, with the offer's zone and market where given.

    `template_ad_text` is the ad of a whole, empty slot in new syntax, without what belongs to one machine
    only. Raises `classad2.ClassAdException` where it can't be read.
    """
    ad = ClassAd(template_ad_text)
    partitionable = _value(ad, "PartitionableSlot") is True
    prefix = "TotalSlot" if partitionable else ""
    said = _value(ad, "MachineResources")
    custom = custom_names(said) if isinstance(said, str) else ()
    names = (*RESOURCES, *custom)
    sizes = [_number(ad, prefix + name, name) for name in names]
    resources = of_amounts(sizes, [name.lower() for name in custom])
    if partitionable:
        for name, size in zip(names, sizes, strict=True):
            ad[name] = size
        ad["NumDynamicSlots"] = 0
    if offer is not None:
        ad[ATTRIBUTES["zone"]] = offer.zone
        ad[ATTRIBUTES["market"]] = offer.market
        for name, value in bought(offer).items():
            ad[name] = value
    return Kind(kind_key, repr(ad), resources, partitionable, slots, learned=True)


def share(whole: Resources, slots: int) -> Resources:
    """One of so many equal static slots."""
    return of_amounts([amount // slots for amount in whole.amounts(whole.names)], whole.names)


def _custom(worker_class: WorkerClass) -> dict[str, str]:
    """What a startd says of custom resources besides how much there is of each."""
    names = list(worker_class.resources)
    if not names:
        return {}
    checked = "".join(f" && (TARGET.Request{n} =?= undefined || MY.{n} >= TARGET.Request{n})" for n in names)
    return {
        "MachineResources": quote(" ".join((*_MACHINE_RESOURCES, *names))),
        "WithinResourceLimits": _PLATFORM["WithinResourceLimits"] + checked,
    }


def _quantities(one: Resources, whole: Resources, static: int | None) -> dict[str, str]:
    names = (*RESOURCES, *whole.names)
    named = zip(names, one.amounts(whole.names), whole.amounts(whole.names), strict=True)
    found = {
        "SlotType": '"Static"' if static else '"Partitionable"',
        "TotalSlots": str(static or 1),
        "SlotID": "1",
    }
    if not static:
        found["PartitionableSlot"] = "true"
    for name, here, everywhere in named:
        found |= {name: str(here), f"TotalSlot{name}": str(here), f"Total{name}": str(everywhere)}
        if name != "Disk":
            found[f"Detected{name}"] = str(everywhere)
    return found


def _value(ad: ClassAd, name: str) -> object:
    try:
        return evaluated(ad.lookup(name), ad)
    except KeyError:
        return None


def _number(ad: ClassAd, *names: str) -> int:
    for name in names:
        value = _value(ad, name)
        if isinstance(value, int | float) and not isinstance(value, bool | Value) and 0 <= value < LARGEST:
            return int(value)
    return 0
