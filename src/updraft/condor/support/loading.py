"""What a load test says to collectors and asks them: the bindings' side of `updraft.load`, on the head."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_COLLECTOR = (
    *("Name", "UpdatesTotal", "UpdatesInitial", "UpdatesLost", "StatsLastUpdateTime", "DroppedQueries"),
    *("RecentDaemonCoreDutyCycle", "MonitorSelfSecuritySessions", "MonitorSelfRegisteredSocketCount"),
)
_CYCLE = (
    *("Time", "End", "Duration", "CpuTime", "TotalSlots", "CandidateSlots", "NumIdleJobs"),
    *("NumJobsConsidered", "Matches", "Rejections", "SubmittersOutOfTime"),
)
_CYCLES_KEPT = 3


def token_only(tokens: Path) -> Mapping[str, str]:
    """The environment in which HTCondor has nothing to show but the tokens of this folder."""
    nothing = str(tokens / "no-keys")
    return {
        "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "IDTOKENS",
        "_CONDOR_SEC_TOKEN_DIRECTORY": str(tokens),
        "_CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY": str(tokens),
        "_CONDOR_SEC_PASSWORD_DIRECTORY": nothing,
    }


def advertise(collector: str, ads: Mapping[str, Sequence[Any]]) -> None:
    """Send ads over TCP, those of each command over one connection. Raises what the bindings raise."""
    import htcondor2

    to = htcondor2.Collector(collector)
    for command, some in ads.items():
        to.advertise(list(some), command, True)


def failures() -> tuple[type[Exception], ...]:
    """What `advertise` raises where the collector can't be reached or refuses."""
    import htcondor2

    return (htcondor2.HTCondorException, OSError)


def heard(collector: str | None, attributes: Sequence[str], constraint: str) -> list[dict[str, Any]]:
    """These attributes of all ads that satisfy the constraint, as this collector has them."""
    import htcondor2

    found = htcondor2.Collector(collector).query(htcondor2.AdType.Any, constraint, list(attributes))
    return [{name: ad.get(name) for name in attributes} for ad in found]


def own_statistics(collector: str) -> dict[str, Any]:
    """The last words about itself of a collector that has none below it; empty while it has said none."""
    import htcondor2

    found = htcondor2.Collector(collector).query(htcondor2.AdType.Collector, projection=list(_COLLECTOR))
    return {name: found[0].get(name) for name in _COLLECTOR} if found else {}


def cycles(collector: str | None) -> list[dict[str, Any]]:
    """The negotiator's last cycles, the latest first: the attributes LastNegotiationCycle… without that."""
    import htcondor2

    names = [f"LastNegotiationCycle{name}{index}" for index in range(_CYCLES_KEPT) for name in _CYCLE]
    found = htcondor2.Collector(collector).query(htcondor2.AdType.Negotiator, projection=names)
    return [
        cycle
        for ad in found
        for index in range(_CYCLES_KEPT)
        if (cycle := {name: ad.get(f"LastNegotiationCycle{name}{index}") for name in _CYCLE})["Time"]
    ]
