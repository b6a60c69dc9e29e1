"""What is to be known of the pool: who answers, what we may do there, whether workers will be let in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from updraft.bootstrap.condor_config import CLIENT_PROOFS, NO_FS
from updraft.bootstrap.head.transforms import guarded
from updraft.checks import tokens
from updraft.checks.asking import Answer
from updraft.checks.finding import POOL, Finding, short
from updraft.condor.support.probe import CollectorSeen, ScheddSeen
from updraft.config.values.units import spell
from updraft.core.demand.doubts import ROOM_IN_DOUBT
from updraft.core.demand.left_out import (
    LEFT_OUT,
    LEFT_OUT_ANNEX,
    LEFT_OUT_CLASS,
    LEFT_OUT_CLOUD,
    LEFT_OUT_OFFER,
    LEFT_OUT_REPORT,
    ODD_INSTANCE,
    ODD_OFFER,
    ODD_SLOT,
    UNREAD_ANNEX,
    UNREAD_BOOT,
)
from updraft.errors import PoolDenied, UpdraftError

OLDEST = (23, 0)
SKEW_NOTED = 10.0
SKEW_MAX = 60.0
CYCLE_AGE = 3600.0
_DRAIN_TOOL = "condor_drain"
_NOBODY = "unauthenticated@"  # how HTCondor calls who has shown nothing
_REPORT = "report it with the error in the log (code plan-failed)"
_REMEDIES = {
    LEFT_OUT_OFFER: f"{_REPORT}; the other offers are bought meanwhile",
    LEFT_OUT_CLASS: f"look at its [classes.NAME], and {_REPORT}; its machines stay meanwhile",
    LEFT_OUT_REPORT: f"{_REPORT}; only what is told of it is missing",
    LEFT_OUT_ANNEX: f"its owner can end it with `updraft annex delete`; {_REPORT}",
    LEFT_OUT_CLOUD: f"{_REPORT}; it counts as one that does not answer meanwhile",
}
_WHY = {
    "READ": "read its ads",
    "ADMINISTRATOR": "drain machines",
    "ADVERTISE_STARTD": "clear the ads of machines that are gone",
    "ADVERTISE_MASTER": "clear the ads of machines that are gone",
    "UPDATE_AD_GENERIC": "say that this controller acts for the pool (DAEMON)",
}


class Probe(Protocol):
    """What is asked of a pool; `condor.probe.PoolProbe` does it."""

    def collector(self, deadline: float, settings: tuple[str, ...] = ()) -> CollectorSeen:
        """What the collector says of itself and of these settings, and what we may do there."""

    def schedds(self, deadline: float) -> Mapping[str, ScheddSeen | str]:
        """Every schedd; a sentence in place of one that doesn't answer."""

    def tools_version(self) -> str:
        """The version of HTCondor's tools on this machine."""

    def tool(self, name: str) -> str:
        """Where a tool is; empty where this machine has none."""

    def worker_token(self, deadline: float) -> Mapping[str, str]:
        """What a freshly made worker's token is good for at the collector."""

    def stranger(self, deadline: float) -> str:
        """Who the collector takes somebody for who shows nothing; "" where it doesn't let him read."""

    def close(self) -> None:
        """End its children."""


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """The answers to `questions`; `known_schedds` are those that a daemon has seen before, `warnings` codes
    and sentences of its last look; `trust_groups` is whether groups are gone by; `on_head` whether updraft
    runs on the head; `stranger` None is not to be judged."""

    now: float
    collector: Answer
    schedds: Answer
    tools: Answer
    drain_tool: bool
    token: Answer
    signing_key: str
    known_schedds: Sequence[str] = ()
    warnings: Sequence[tuple[str, str]] = ()
    trust_groups: bool = False
    on_head: bool = True
    stranger: Answer | None = None


def questions(probe: Probe, deadline: float) -> Mapping[str, Callable[[], Any]]:
    """What to ask of a pool."""
    return {
        "collector": lambda: probe.collector(deadline, (*tokens.SETTINGS, *_PROOFS, _DAEMONS)),
        "schedds": lambda: probe.schedds(deadline),
        "tools": probe.tools_version,
        "token": lambda: probe.worker_token(deadline),
        "stranger": lambda: probe.stranger(deadline),
    }


def judge(facts: PoolFacts) -> Iterator[Finding]:
    """Everything that is to be said of a pool."""
    yield from tools(facts)
    seen = facts.collector.value
    if facts.collector.error is not None:
        yield _silent_collector(facts.collector.error)
        names = "schedds, negotiator, rights, clock, workers' tokens"
        yield POOL.skipped(names, "the collector, through which all of it goes, doesn't answer")
        return
    yield POOL.ok("collector", f"{seen.name} answers, HTCondor {seen.version or 'of unknown version'}")
    yield from clock(seen)
    yield from rights(seen)
    yield from strangers(facts)
    yield from proofs(seen)
    yield from negotiator(facts, seen)
    yield from schedds(facts)
    yield from groups(facts)
    yield from left_out(facts)
    yield from budgets(facts)
    yield from tokens.judge(facts.token, facts.signing_key, seen)
    yield from tokens.lines(seen, on_head=facts.on_head)


def tools(facts: PoolFacts) -> Iterator[Finding]:
    """HTCondor's own tools are here, of a version that was tried, and not older than the pool."""
    if facts.tools.error is not None or not facts.drain_tool:
        why = str(facts.tools.error or f"{_DRAIN_TOOL} is not there").rstrip(".")
        yield POOL.problem(
            "HTCondor's tools",
            f"this machine can't drain: {why}",
            "install HTCondor here, or run updraft on the head, where it is",
        )
        return
    version = facts.tools.value
    seen = facts.collector.value
    pool = seen.version if seen is not None else ""
    oldest = min((_numbers(one) for one in (version, pool) if one), default=OLDEST)
    if oldest < OLDEST:
        least = ".".join(map(str, OLDEST))
        text = f"tools {version}, pool {pool or 'unknown'}: older than what was tried ({least})"
        yield POOL.warning("HTCondor's versions", text, f"update HTCondor to {least} or later")
    elif pool and _numbers(version)[:1] != _numbers(pool)[:1]:
        text = f"the tools here are {version}, the pool is {pool}"
        yield POOL.warning("HTCondor's versions", text, "install the pool's release here")
    else:
        yield POOL.ok("HTCondor's versions", f"tools {version}" + (f", pool {pool}" if pool else ""))


def _silent_collector(error: UpdraftError) -> Finding:
    if isinstance(error, PoolDenied):
        return POOL.problem("collector", short(error), f"let this machine read the pool; {tokens.EXISTING}")
    return POOL.problem(
        "collector",
        f"it doesn't answer: {short(error)}",
        "start HTCondor on the head (`systemctl start condor`), or correct collector in [pool]; port 9618 "
        "must be open from here",
    )


def clock(seen: CollectorSeen) -> Iterator[Finding]:
    """The collector's clock agrees with ours."""
    off = abs(seen.skew)
    way = "ahead of" if seen.skew > 0 else "behind"
    if off <= SKEW_NOTED:
        yield POOL.ok("clock", "the collector's clock agrees with this machine's")
        return
    text = f"the collector's clock is {spell(off)} {way} this machine's"
    remedy = "let chrony or systemd-timesyncd set both clocks: tokens and deadlines depend on them"
    yield POOL.problem("clock", text, remedy) if off > SKEW_MAX else POOL.warning("clock", text, remedy)


def rights(seen: CollectorSeen) -> Iterator[Finding]:
    """We may do at the collector what a controller does there."""
    refused = [right for right, identity in seen.rights.items() if not identity]
    if not refused:
        who = sorted({identity for right, identity in seen.rights.items() if right != "READ"})
        if any(identity.startswith(_NOBODY) for identity in who):
            yield POOL.warning(
                "rights at the collector",
                "whoever reaches the collector may drain and advertise, with no proof of who that is",
                "set SEC_DEFAULT_AUTHENTICATION = REQUIRED there, and ALLOW_ADMINISTRATOR to who may",
            )
        else:
            yield POOL.ok("rights at the collector", f"{', '.join(who)} may read, drain and advertise")
    for right in refused:
        yield POOL.problem(
            f"right {right}",
            f"the collector refuses us what it takes to {_WHY.get(right, 'control the pool')}",
            f"run as root on the head, or give the token's identity that right; {tokens.EXISTING}",
        )


def strangers(facts: PoolFacts) -> Iterator[Finding]:
    """Who shows nothing reads nothing: jobs reach the collector, too."""
    what, answer = "reading without a token", facts.stranger
    if answer is None:
        return
    if answer.error is not None:
        yield POOL.skipped(what, short(answer.error))
    elif answer.value:
        yield POOL.warning(
            what,
            f"the collector answers whoever reaches it ({answer.value}), and by HTCondor's defaults so do "
            "the schedds: any job can read all jobs' arguments and environment there",
            "on the head and the submit nodes set SEC_READ_AUTHENTICATION = REQUIRED and DENY_READ = "
            "$(DENY_READ) *@unmapped, as `updraft head init` does; docs/howto/existing-pool.md says who then "
            "needs a token",
        )
    else:
        yield POOL.ok(what, "the collector tells nothing to who shows nothing")


def proofs(seen: CollectorSeen) -> Iterator[Finding]:
    """What the head's daemons show to whom they call can't be shown on by him."""
    if seen.settings is None:
        return
    told = (seen.settings.get(name, "") for name in _PROOFS)
    used = next((text for text in told if text), "FS")
    if "FS" not in _words(used):
        yield POOL.ok(_BY_FILES, f"they prove who they are by {used}")
    elif "BROKER" in _words(seen.settings.get(_DAEMONS, "")):
        yield _by_files_at_a_broker(seen)
    else:
        yield POOL.warning(
            _BY_FILES,
            "where they call somebody, they prove who they are by files, too (FS): whoever gets one to call "
            "him, as an account of the head or root of a worker can, may be condor@ of the whole pool",
            f"`updraft head init` again on a head that it has made; else set <DAEMON>.{CLIENT_PROOFS} = "
            f"{NO_FS} there for each of its daemons (docs/explanation/security.md)",
        )


def _by_files_at_a_broker(seen: CollectorSeen) -> Finding:
    """No line of the configuration helps there: the broker takes no other proof of the head's daemons."""
    why = "the broker here takes no other proof of the head's daemons than a file (FS)"
    least = ".".join(map(str, _GUARDED))
    if _numbers(seen.version) >= _GUARDED:
        return POOL.ok(_BY_FILES, f"{why}, and HTCondor {seen.version} itself lets nobody show it on")
    return POOL.warning(
        _BY_FILES,
        f"{why}: whoever gets one of them to call him, as an account of the head or root of a worker can, "
        f"may be condor@ of the whole pool; `updraft head init` changes nothing about it",
        f"update HTCondor on the head to {least} or later, which guards against it "
        "(docs/explanation/security.md)",
    )


def _words(text: str) -> list[str]:
    return text.upper().replace(",", " ").split()


_BY_FILES = "proofs of the head's daemons"
_GUARDED = (25, 11, 1)  # the release that guards proofs by files against being shown on (HTCONDOR-2026-0001)
_DAEMONS = "DAEMON_LIST"
# The negotiator stands for all of them: it calls whoever has jobs, or says so.
_PROOFS = (f"NEGOTIATOR.{CLIENT_PROOFS}", CLIENT_PROOFS, "SEC_DEFAULT_AUTHENTICATION_METHODS")


def negotiator(facts: PoolFacts, seen: CollectorSeen) -> Iterator[Finding]:
    """Somebody matches jobs to machines."""
    if not seen.negotiators:
        yield POOL.problem(
            "negotiator",
            "the pool has none: no job starts",
            "start it: NEGOTIATOR in DAEMON_LIST on the head",
        )
    elif seen.cycle_ended is not None and facts.now - seen.cycle_ended > CYCLE_AGE:
        age = spell(round(facts.now - seen.cycle_ended))
        text = f"its last cycle that is known ended {age} ago"
        yield POOL.warning("negotiator", text, "look at NegotiatorLog on the head")
    else:
        yield POOL.ok("negotiator", "it is there")


def schedds(facts: PoolFacts) -> Iterator[Finding]:
    """Every schedd answers, those seen earlier too, and lets us give jobs back."""
    if facts.schedds.error is not None:
        yield POOL.problem("schedds", short(facts.schedds.error), "look at SchedLog on the submit nodes")
        return
    found: Mapping[str, ScheddSeen | str] = facts.schedds.value
    for name in [one for one in facts.known_schedds if one not in found]:
        yield POOL.problem(
            f"schedd {name}",
            "it was in the pool earlier, and the collector has it no more: its jobs are frozen",
            f"start HTCondor on {name.rpartition('@')[2]}; if it is gone for good, wait half an hour",
        )
    if not found:
        yield POOL.problem(
            "schedds", "the pool has none: there is nowhere to submit to", "start one: SCHEDD in DAEMON_LIST"
        )
    for name, one in found.items():
        yield _schedd(name, one)


def _schedd(name: str, seen: ScheddSeen | str) -> Finding:
    what = f"schedd {name}"
    if isinstance(seen, str):
        return POOL.problem(
            what, f"it doesn't answer: {seen}", "look at SchedLog there; its port must be open from here"
        )
    if not seen.identity:
        return POOL.problem(
            what,
            "it answers, and we may not give jobs of vanished machines back (WRITE)",
            f"run as root on the head, or give the token's identity WRITE there; {tokens.EXISTING}",
        )
    user = seen.identity.partition("@")[0]
    if seen.superusers is None:
        return POOL.skipped(what, "it answers; whether we are queue superuser it doesn't say")
    if not {user, seen.identity} & set(seen.superusers):
        return POOL.problem(
            what,
            f"{seen.identity} is none of its queue superusers ({', '.join(seen.superusers)})",
            f"add {user} to QUEUE_SUPER_USERS there; {tokens.EXISTING}",
        )
    return POOL.ok(what, f"it answers; {seen.identity} may give jobs back")


def groups(facts: PoolFacts) -> Iterator[Finding]:
    """Whether jobs' accounting groups may be believed, where updraft is told to."""
    what, found = "accounting groups", facts.schedds.value or {}
    said = {name: one for name, one in found.items() if isinstance(one, ScheddSeen)}
    silent = [n for n, one in said.items() if one.requirements is None or one.immutable is None]
    open_ = [
        name
        for name, one in said.items()
        if name not in silent and not guarded(one.requirements or (), one.immutable or ())
    ]
    if open_:
        free = f"a job at {', '.join(open_)} may name any group and any user"
        guard = "put `updraft userdata schedd --groups` into its configuration (`updraft head init` does)"
        if facts.trust_groups:
            text = (
                f"updraft goes by groups ([pool] trust_groups, or since this head was set up so), and {free}"
            )
            yield POOL.problem(what, text, f"{guard}, or set trust_groups = false in [pool]")
        else:
            yield POOL.warning(what, f"{free}, by which the negotiator goes, and updraft doesn't", guard)
    elif silent and facts.trust_groups:
        yield POOL.skipped(
            what, f"whether {', '.join(silent)} refuses groups that aren't a user's isn't told"
        )
    elif said and not silent:
        yield POOL.ok(what, "every schedd that answers refuses groups that aren't their user's")


def left_out(facts: PoolFacts) -> Iterator[Finding]:
    """The daemon's last look left nothing out of which nothing could be made."""
    for code, text in facts.warnings:
        if code == LEFT_OUT:
            remedy = (
                "its owner can mend it with `condor_qedit`, or remove it; see docs/howto/troubleshooting.md"
            )
            yield POOL.warning("jobs left out", text, remedy)
        elif code == ODD_SLOT:
            yield POOL.warning("odd slot", text, "look at the configuration of that machine, or who is on it")
        elif code == ROOM_IN_DOUBT:
            yield POOL.warning(
                "room in doubt", text, "look at who is on that machine, or `updraft terminate` it"
            )
        elif code == ODD_INSTANCE:
            yield POOL.warning("odd instance", text, "look at that machine in its cloud, or report it")
        elif code == ODD_OFFER:
            yield POOL.warning("odd offer", text, "ask whoever runs that cloud; all else is bought meanwhile")
        elif code == UNREAD_BOOT:
            yield POOL.problem("boots", text, "see its console at the cloud, and docs/howto/ec2.md")
        elif code == UNREAD_ANNEX:
            yield POOL.warning("annex left out", text, "create it again: that replaces what can't be read")
        elif code in _REMEDIES:
            yield POOL.warning(f"{code.removeprefix(f'{LEFT_OUT}-')} left out", text, _REMEDIES[code])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def budgets(facts: PoolFacts) -> Iterator[Finding]:
    """What the daemon's last look said of budgets of a day or a month."""
    for code, text in facts.warnings:
        if code in _OF_BUDGETS:
            yield POOL.warning("budget", text, _OF_BUDGETS[code])


_OF_BUDGETS = {
    "budget-nearly-spent": "raise it, or lower cost_per_hour, so that it lasts; see docs/howto/budgets.md",
    "budget-spent": "raise cost_per_day or cost_per_month, or wait; see docs/howto/budgets.md",
    "spending-unknown": "see the daemon's log for why its records can't be written or read",
    "groups-not-trusted": "set trust_groups where the schedds guard groups, or give users budgets",
}
