"""Hostile ads: whatever a job's owner or a worker may write, under the names that updraft reads.

This file is a script, too: `python3 - SEED JOBS MACHINES` on a head makes so many jobs, changes them as their
owner may, advertises so many slots, and prints how many jobs and slots were taken.
"""

import contextlib
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice

JOB_NAMES = (
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "RequireGPUs", "Requirements", "Rank"),
    *("JobPrio", "AccountingGroup", "AcctGroup", "UpdraftRunTime", "UpdraftSpot", "UpdraftPrice"),
    *("UpdraftClass", "UpdraftCloud", "UpdraftZone", "UpdraftDeadline", "AllowedExecuteDuration"),
    *("AllowedJobDuration", "MaxRuntime", "MaxWallTimeMins", "JobLeaseDuration", "LastJobLeaseRenewal"),
    *("JobCurrentStartDate", "RemoteHost", "RemoteHosts", "AllRemoteHosts", "QDate", "Cmd", "JobBatchName"),
    *("ImageSize", "DiskUsage", "MemoryUsage", "ResidentSetSize", "NumJobStarts", "TransferInputSizeMB"),
    *("JobStartDate", "ExitCode", "ExitBySignal", "CompletionDate", "RemoteWallClockTime", "MaxHosts"),
    *("TargetAnnexName", "VMAMI", "HoldReason", "HoldReasonCode", "HoldReasonSubCode", "Foo", "Mine"),
    *("JobMaterializeDigestFile", "JobMaterializeLimit", "ConcurrencyLimits", "FlockTo", "WantParallel"),
    *("JobFactoryPaused", "JobFactoryTotalProcs", "JobMaterializeNextProcId", "JobsPresent"),
    *(
        "TotalSubmitProcs",
        "UpdraftImage",
        "UpdraftFlavor",
        "UpdraftNetwork",
        "UpdraftLayers",
        "UpdraftClouds",
    ),
    *("UpdraftKeepAlive", "UpdraftMaxPrice", "UpdraftOwnRequirements", "MayUseAWS", "TargetClouds"),
    *("VMAMIConfig", "VMCPUCores", "VMHighPriority", "VMImage", "VMImageID", "VMInstanceType", "VMKeepAlive"),
    *("VMLoc", "VMMaximumPrice", "VMMem", "VMName", "VMNetwork", "VMStorage", "VMTypeLimit", "VMUserData"),
)
MACHINE_NAMES = (
    *("Cpus", "Memory", "Disk", "GPUs", "TotalSlotCpus", "TotalSlotMemory", "TotalSlotDisk", "TotalCpus"),
    *("Start", "Requirements", "Rank", "State", "Activity", "SlotType", "PartitionableSlot", "DynamicSlot"),
    *("UpdraftPool", "UpdraftInstance", "UpdraftLaunch", "UpdraftClass", "UpdraftFlavor", "UpdraftZone"),
    *("UpdraftGeneration", "UpdraftMarket", "Draining", "DrainReason", "DaemonStartTime", "MyCurrentTime"),
    *("LastHeardFrom", "ChildCpus", "ChildMemory", "ChildState", "ChildActivity", "NumDynamicSlots", "Foo"),
    *("ChildDisk", "ChildGPUs", "ChildName", "ChildRemoteUser", "ChildAccountingGroup", "ChildGlobalJobId"),
    *("ChildRetirementTimeRemaining", "RetirementTimeRemaining", "RemoteUser", "AccountingGroup", "Offline"),
    *("GlobalJobId", "JobStarts", "ClaimRequests", "TotalSlotGPUs", "UpdateSequenceNumber", "UpdraftCloud"),
    *(
        "UpdraftVariant",
        "AuthenticatedIdentity",
        "Machine",
        "EnteredCurrentState",
        "ChildEnteredCurrentState",
    ),
    *("MachineResources", "FPGAs", "TotalSlotFPGAs", "ChildFPGAs"),
)
_NUMBERS = (
    *("0", "-1", "1e308", "-1e308", 'real("NaN")', 'real("INF")', "9223372036854775807", "0.5", "1/0"),
    *("-9223372036854775807 - 1", "2147483648", "1e-320", "true", "undefined", "error"),
)
_TEXTS = (
    *("", " ", "\x1b[2J\x1b]0;owned\x07", "%s%n%d", "../../etc/passwd", "a,b;c|d", "\u202eevil", "𐍈" * 50),
    *("line\nline", "x" * 1024, "y" * 65_536, "'; DROP TABLE jobs; --", "{{7*7}}", "$(touch /tmp/owned)"),
)
_SHAPES = (
    *("{NAME} + 1", "MY.{NAME}", "TARGET.Memory * 1e300", "Foo + {NAME}", "!" * 490 + "true"),
    *("(" * 400 + "1" + ")" * 400, " || ".join(["TARGET.Cpus > 1"] * 1000), "{{1,{{2,{{3}}}}}}"),
    *("[a = 1; b = [c = 2]]", 'regexp("(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!")', 'strcat("a", Foo)'),
    *("ifThenElse(Foo > 1, Mine, {NAME})", "time()", "random(10)", "splitList(Foo)[3]", "Foo =?= Mine"),
)
_MIB = 1 << 20
_HUGE_AT = 7  # of each cluster, the number of the job that has a text of one MiB
_PER_CLUSTER = 100
_LOT = 10


def value(rng: random.Random, name: str) -> str:
    """A value for this name, as ClassAd text."""
    kind = rng.randrange(3)
    if kind == 0:
        return rng.choice(_NUMBERS)
    if kind == 1:
        text = rng.choice(_TEXTS)
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return rng.choice(_SHAPES).format(NAME=name)


def advertise(seed: int, count: int) -> int:
    """Advertise so many slots, each of its own machine, with a few hostile values; how many were sent."""
    import classad2

    rng = random.Random(seed)
    ads = []
    for number in range(count):
        ad = {
            "MyType": '"Machine"', "Name": f'"slot1@odd{number}"', "Machine": f'"odd{number}"', "Cpus": "8",
            "MyAddress": f'"<10.99.{number // 250}.{number % 250 + 1}:9618>"', "State": '"Unclaimed"',
            "Activity": '"Idle"', "PartitionableSlot": "true", "Memory": "8000", "Disk": "100000000",
            "Start": "true", "Requirements": "Start",
        }  # fmt: skip
        for name in rng.sample(MACHINE_NAMES, rng.randint(1, 3)):
            text = value(rng, name)
            with contextlib.suppress(Exception):  # no release takes it
                classad2.ExprTree(text)
                ad[name] = text
        ads.append("".join(f"{name} = {text}\n" for name, text in ad.items()))
    sent = 0
    for first in range(0, count, _PER_CLUSTER):
        some = "\n".join(ads[first : first + _PER_CLUSTER])
        words = ("condor_advertise", "-multiple", "UPDATE_STARTD_AD", "-")
        said = subprocess.run(words, input=some, capture_output=True, text=True, check=False).stdout
        sent += int(said.split()[1]) if said.startswith("Sent ") else 0
    return sent


def _edited(rng: random.Random, jobs: list[str]) -> Iterator[list[str]]:
    """The jobs in small lots, of each of which one attribute is changed: each job is in one to three.

    A change takes a schedd as long for ten jobs as for one: 20 to 60 ms on a busy machine.
    """
    for share in (1.0, 0.67, 0.33):
        some = rng.sample(jobs, round(share * len(jobs)))
        yield from (some[first : first + _LOT] for first in range(0, len(some), _LOT))


def submit(seed: int, count: int) -> int:
    """Make so many jobs at this host's schedd, and change each; how many there are."""
    import htcondor2

    # These bindings no longer prove who they are by FS to a schedd that is older than 25: by a token, then.
    fetch = ("condor_token_fetch", "-type", "SCHEDD", "-token", "own")
    subprocess.run(fetch, check=True, capture_output=True, timeout=60)
    rng = random.Random(seed)
    schedd = htcondor2.Schedd()
    made = tried = 0
    while made < count and tried < 2 * count:
        said = {"executable": "/bin/sleep", "arguments": "600", "requirements": "TARGET.Nowhere =?= 1"}
        if rng.random() < 0.5:
            name = rng.choice(JOB_NAMES)
            said[f"My.{name}"] = value(rng, name).replace("\n", " ")
        some = min(_PER_CLUSTER, count - made)
        tried += some
        with contextlib.suppress(Exception):  # refused: another one
            cluster = schedd.submit(htcondor2.Submit(said), count=some).cluster()
            made += some
            for jobs in _edited(rng, [f"{cluster}.{proc}" for proc in range(some)]):
                name = rng.choice(JOB_NAMES)
                with contextlib.suppress(Exception):
                    schedd.edit(jobs, name, value(rng, name))
            with contextlib.suppress(Exception):
                schedd.edit(f"{cluster}.{_HUGE_AT}", "UpdraftImage", f'"{"z" * _MIB}"')
    return made


if __name__ == "__main__":
    seed, jobs, machines = islice(map(int, sys.argv[1:]), 3)
    sys.stdout.write(f"{submit(seed, jobs)} {advertise(seed, machines)}\n")
