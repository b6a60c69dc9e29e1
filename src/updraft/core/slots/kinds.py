"""Kinds of slots: the keys they go by, and the ad of a whole, empty slot made from a real one.

Pure functions over ClassAd text in the new syntax.
"""

import hashlib
import re
from functools import lru_cache
from typing import Any

import classad2

# A job group that cannot be evaluated carries this attribute in its ad: why, in one sentence.
PROBLEM_ATTR = "UpdraftProblem"


@lru_cache(maxsize=4096)
def problem(ad: str) -> str:
    """Why the group with this ad can't be evaluated; empty where the ad doesn't say."""
    try:
        said = classad2.ClassAd(ad).get(PROBLEM_ATTR)
    except (classad2.ClassAdException, ValueError):
        return ""
    return said if isinstance(said, str) else ""


def problem_ad(why: str) -> str:
    """The ad of a group that can't be evaluated, with the reason."""
    plain = "".join(sign if sign.isprintable() else " " for sign in why)
    return repr(classad2.ClassAd({"MyType": "Job", PROBLEM_ATTR: plain}))


RESOURCES = ("Cpus", "Memory", "Disk", "GPUs")

_STANDARD = frozenset({*(name.lower() for name in RESOURCES), "swap"})
_MOST_CUSTOM = 16
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@lru_cache(maxsize=1024)
def custom_names(machine_resources: str) -> tuple[str, ...]:
    """The custom resources among a slot's `MachineResources`, as they are written; sixteen at most."""
    found = {
        name.lower(): name
        for name in machine_resources.split()
        if name.lower() not in _STANDARD and _PLAIN.fullmatch(name)
    }
    return tuple(found[key] for key in sorted(found)[:_MOST_CUSTOM])


LARGEST = 1 << 53
"""No number of an ad is as large: beyond it not every whole number is one that a ClassAd's real can hold."""

# What belongs to one machine: its names and addresses, and whose it is.
_OWN = frozenset(
    word
    for word in """
    name machine myaddress addressv1 startdipaddr updraftinstance updraftlaunch updraftzone updraftmarket
    updraftspot updraftprice
    utsnamenodename hardwareaddress subnetmask condorscratchdir authenticatedidentity authenticationmethod
    authenticatedusermapping collector_host_string executevolume executevolumes instanceid ec2instanceid
    cloudinstanceid publicclaimid claimid currentrank slotid islocalstartd ipv4address ipv6address
    tcpforwardinghost startdname jobid globaljobid clientmachine remoteowner remoteuser accountinggroup
    scheddname scheddipaddr drainreason drainingrequestid draining offline starterpid hibernationlevel
    hibernationstate canhibernate
    """.split()  # noqa: SIM905 (one word after the other reads best)
)

# What changes while the machine lives: counters, clocks, loads and states.
_VOLATILE = re.compile(
    r"^(child|recent|updates|monitorself|totaltime|expectedmachine|lastdrain|lasthibernation|lastfetch|lastheard"
    r"|lastbenchmark|lastmatch|machinelastmatch|_condor_|job(starts|.*preemptions)$|mycurrent|daemon(core|last|start)|entered|clock"
    r"|console|keyboard|total(job|inuse|transfer|machinedraining)|avgtransfer|num(dynamic|pids)|newdslot|nextfetch"
    r"|retirementtime|timetolive|.*loadavg$|cpubusy$|claimrequests$|activationrequests$|updatesequencenumber$"
    r"|state$|activity$|totalslots$|virtualmemory$|totalvirtualmemory$|acceptedwhiledraining$|mips$|kflops$"
    r"|badput)"
)

# Quantities: two machines of one kind, but of another size, still differ in these only.
_QUANTITY = re.compile(
    r"^(total|totalslot|detected)?(cpus|memory|disk|gpus|swap)$|^detected(memory|disk|cpus)$"
)
_OF = ("", "Total", "TotalSlot", "Detected", "Assigned", "Available")


def kind_key(worker_class: str, generation: str, cloud: str, flavor: str, written: str = "") -> str:
    """The kind that machines of this class, generation, cloud, flavor and variant (as written) share."""
    plain = "/".join((worker_class, generation, cloud, flavor))
    return f"{plain}?{written}" if written else plain


def apart_key(kind: str, zone: str, market: str) -> str:
    """The kind of those machines of a kind that are in this zone and were bought on this market."""
    return f"{kind}@{zone}/{market}"


def foreign_kind_key(ad: str) -> str:
    """The kind of a slot that isn't ours: `site/` and a hash of what matching could read in its ad.

    Volatile attributes and quantities are left out. ValueError if `ad` is no ClassAd.
    """
    parsed = _parse(ad)
    custom = {f"{of}{name}".lower() for name in _custom(parsed) for of in _OF}
    lines = sorted(
        f"{name.lower()}={parsed.lookup(name)}"
        for name in parsed
        if not _is_own(name) and not _QUANTITY.match(name.lower()) and name.lower() not in custom
    )
    return "site/" + hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def template(ad: str) -> str:
    """The ad of a whole, empty slot, from a real one's: what belongs to one machine or moment is taken out.

    Cpus, Memory, Disk, GPUs and custom resources are set back to the slot's totals. ValueError if `ad` is
    no ClassAd.
    """
    parsed = _parse(ad)
    names = (*RESOURCES, *_custom(parsed))
    whole = {name: parsed.get(f"TotalSlot{name}", parsed.get(name)) for name in names}
    host = parsed.get("Machine")
    for name in list(parsed):
        # A domain that is the host's own name is as good as none: no job shares it.
        if _is_own(name) or (name in ("FileSystemDomain", "UidDomain") and parsed.get(name) == host):
            del parsed[name]
    for name, value in whole.items():
        if isinstance(value, int | float) and 0 <= value < LARGEST:
            parsed[name] = int(value)
    parsed["State"] = "Unclaimed"
    parsed["Activity"] = "Idle"
    return repr(parsed)


def _custom(parsed: Any) -> tuple[str, ...]:
    said = parsed.get("MachineResources")
    return custom_names(said) if isinstance(said, str) else ()


def _parse(ad: str) -> Any:
    try:
        return classad2.ClassAd(ad)
    except (classad2.ClassAdException, ValueError, SyntaxError) as error:
        raise ValueError("not a ClassAd") from error


@lru_cache(maxsize=4096)  # the same few hundred names come again in the ad of every slot
def _is_own(name: str) -> bool:
    lower = name.lower()
    return lower in _OWN or _VOLATILE.match(lower) is not None
