"""What is said of a run, and of several."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from tests.chaos.judged.judging import back_to_normal, done, listings, worst_minute
from tests.chaos.running import Outcome


def told(outcome: Outcome) -> str:
    """The figures of one run, and what must never happen and did."""
    seen = outcome.seen
    ends = Counter(machine.why or "?" for machine in seen.cloud.machines.values())
    longest = max((at - since for since, at in pairwise(listings(seen))), default=0.0)
    failed = Counter(deed.what for deed in seen.deeds if deed.failed)
    befell = sum(not deed.failed for deed in seen.deeds)
    lines = [
        f"{done(seen)} jobs done of {len(seen.jobs.submitted)}, {len(seen.cloud.machines)} machines "
        f"({', '.join(f'{count} {why}' for why, count in ends.most_common())})",
        f"{befell} troubles, {sum(failed.values())} more that couldn't be made",
        f"{worst_minute(seen.cloud)[1]} calls of the cloud's API in the worst minute, "
        f"{longest:.0f} s at most between two looks",
        f"the controller at the end: {seen.memory_kib // 1024} MiB, {seen.descriptors} descriptors",
        _normal(back_to_normal(seen)),
        *(f"NEVER: {one.rule}: {one.text}" for one in outcome.findings),
    ]
    if outcome.folder is not None:
        lines.append(f"all logs: {outcome.folder}/timeline")
    return "\n".join(lines)


def total(outcomes: Sequence[Outcome]) -> str:
    """What several runs come to, in a few lines that can be added up."""
    rules = Counter(one.rule for outcome in outcomes for one in outcome.findings)
    kinds = Counter(deed.what for outcome in outcomes for deed in outcome.seen.deeds if not deed.failed)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return "\n".join(
        [
            f"{seconds / 60:.1f} minutes, SEED={' '.join(str(one.seed) for one in outcomes)}: "
            f"{sum(done(one.seen) for one in outcomes)} jobs, "
            f"{sum(len(one.seen.cloud.machines) for one in outcomes)} machines, "
            f"{sum(kinds.values())} troubles of {len(kinds)} kinds",
            "must never happen: " + ", ".join(f"{rules[name]} {name}" for name in RULES),
        ]
    )


RULES = (
    *("killed", "lost", "held", "leaked", "doubled", "limit", "calls", "hang", "secret", "memory"),
    "descriptors",
)
"""The names of what a run is judged by."""


def _normal(times: dict[str, list[float]]) -> str:
    if not times:
        return "no job was waiting when any trouble ended"
    slowest = sorted(times.items(), key=lambda item: -max(item[1]))[:5]
    rows = ", ".join(f"{what} {max(found):.0f} s" for what, found in slowest)
    usual = median(_all(times.values()))
    return f"the next job began {usual:.0f} s after a trouble's end (median), at most: {rows}"


def _all(lists: Iterable[Iterable[float]]) -> list[float]:
    return [one for some in lists for one in some]
