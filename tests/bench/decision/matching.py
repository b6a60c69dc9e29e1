"""Matching alone: 1,000 job groups × 2,000 kinds of slots, cold and warm, and its pairs a second."""

import statistics
import time
from dataclasses import replace
from typing import Any

from tests.bench.rows import Measured, spread
from updraft.condor.process.judge import Judge
from updraft.core.matching.verdicts import UNDECIDED
from updraft.core.model import CloudOffer, JobGroup, Kind, Resources
from updraft.core.settings import WorkerClass
from updraft.core.slots.catalogue import imagine

GROUPS, KINDS, OWNERS = 1_000, 2_000, 50
HARD = 0.05
TIMES = 5
NOW = 1_000_000_000.0
PATIENCE = 60.0
_GIB = 1 << 20

_USUAL = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk)'
    " && (TARGET.Memory >= RequestMemory)"
    " && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))"
)
# What some users put before it: plain comparisons, ...
_PLAIN = (
    "",
    "(TARGET.OpSysMajorVer >= 12) && ",
    '(TARGET.UpdraftCloud == "c1") && ',
    '(TARGET.UpdraftClass =?= "class2") && ',
    "(TARGET.TotalCpus <= 16) && ",
    '(TARGET.OpSysAndVer =!= "Debian11") && ',
)
# ... and what only the ClassAd library can decide; `%d` makes the groups' expressions different ones.
_ASKED = (
    'regexp("^m[1-%d]", TARGET.UpdraftFlavor) && ',
    'stringListMember("https", TARGET.HasFileTransferPluginMethods) && ',
    'versionGE(split(TARGET.CondorVersion)[1], "25.%d.0") && ',
    "(TARGET.Memory >= quantize(RequestMemory, 102%d)) && ",
    "(int(TARGET.Memory / 1024) >= %d) && ",
)


def kinds() -> list[Kind]:
    """Kinds of ten clouds and four classes, no two alike."""
    classes = [WorkerClass(f"class{n}", "g1", ("c1",)) for n in range(4)]
    found = []
    for n in range(KINDS):
        cpus = (2, 4, 8, 16, 32, 64)[n % 6]
        memory = cpus * (2, 4, 8)[n // 6 % 3] * 1024 + n * 16
        size = Resources(cpus, memory, cpus * 20 * _GIB, int(n % 4 == 3))
        offer = CloudOffer(f"c{n % 10}", f"z{n % 3}", f"m{n // 40}.{cpus}", "on-demand", size, 1.0)
        found.append(imagine(classes[n % 4], offer, "image", "pool", f"k{n}"))
    return found


def groups(hard: float) -> list[JobGroup]:
    """Job groups of fifty owners; this share of them has requirements that aren't plain comparisons."""
    each = round(1 / hard) if hard else GROUPS + 1
    return [_group(n, asked=n % each == 1) for n in range(GROUPS)]


def _group(number: int, *, asked: bool) -> JobGroup:
    owner = f"user{number % OWNERS}"
    request = Resources((1, 1, 2, 4, 8)[number % 5], 500 + 37 * number, (1 + number % 9) << 20, 0)
    wish = _PLAIN[number % len(_PLAIN)]
    if asked:
        wish = _ASKED[number // 20 % len(_ASKED)].replace("%d", str(1 + number // 20 % 9))
    ad = (
        f'[ Owner = "{owner}"; RequestCpus = {request.cpus}; RequestMemory = {request.memory};'
        f" RequestDisk = {request.disk}; ImageSize = 100; MemoryUsage = (ResidentSetSize + 1023) / 1024;"
        f' FileSystemDomain = "head.test"; BenchNumber = {number}; Requirements = {wish}{_USUAL} ]'
    )
    return JobGroup(f"{number:016x}", "schedd", owner, f"{owner}@pool", ad, request, 100)


def rate() -> Measured:
    """Pairs per second of processor time where all is plain comparison: the median of whole decisions that
    remember nothing, with the reading of all ads."""
    sold, waiting = kinds(), groups(0.0)
    taken = []
    for _ in range(TIMES):
        with Judge() as judge:
            begun = time.process_time()
            judge.verdicts(waiting, sold, NOW, PATIENCE)
            taken.append(time.process_time() - begun)
    return Measured(GROUPS * KINDS / statistics.median(taken), {"cold_s": spread(taken)})


def cold() -> Measured:
    """The median of whole decisions that remember nothing, the child that answers being there."""
    sold, waiting = kinds(), groups(HARD)
    taken, detail = [], {}
    for _ in range(TIMES):
        with Judge() as judge:
            _start(judge)
            begun = time.perf_counter()
            table = judge.verdicts(waiting, sold, NOW, PATIENCE)
            taken.append(time.perf_counter() - begun)
            detail = _seen(judge, table.copies)
    return Measured(statistics.median(taken), {"cold_s": spread(taken), **detail})


def warm() -> Measured:
    """The next decision about the same, from other objects with the same content: the slowest of all."""
    sold = kinds()
    with Judge() as judge:
        judge.verdicts(groups(HARD), sold, NOW, PATIENCE)
        taken = []
        for cycle in range(TIMES):
            waiting = [replace(group, idle=cycle) for group in groups(HARD)]
            begun = time.perf_counter()
            judge.verdicts(waiting, sold, NOW + cycle, PATIENCE)
            taken.append(time.perf_counter() - begun)
    return Measured(max(taken), {"warm_s": spread(taken)})


def _start(judge: Judge) -> None:
    one = replace(_group(1, asked=True), ad='[ Requirements = regexp("x", TARGET.Arch) ]')
    judge.verdicts([one], kinds()[:1], NOW, PATIENCE)


def _seen(judge: Judge, copies: Any) -> dict[str, Any]:
    return {
        "asked": len(judge._memo.oracle.answers),
        "undecided_pairs": int((copies == UNDECIDED).sum()),
        "share_that_match": float((copies > 0).mean()),
    }
