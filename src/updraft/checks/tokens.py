"""What workers' tokens are good for at the collector: whether it takes them, and what it holds them to.

A head that was set up by an earlier updraft, or by hand, works on without the lines that came later. What is
less safe there is said, with what to do.
"""

from collections.abc import Iterator, Mapping

from updraft.bootstrap.head.identities import ENDED_SETTING, OWN_SETTING, REQUIREMENTS, is_ruled
from updraft.checks.asking import Answer
from updraft.checks.finding import POOL, Finding, short
from updraft.condor.support.probe import CollectorSeen
from updraft.core.reasons import counted

EXISTING = "`updraft init --pool-lines` shows the lines that the pool needs"
SETTINGS = (REQUIREMENTS, REQUIREMENTS.removeprefix("COLLECTOR."), OWN_SETTING, ENDED_SETTING)
"""What the collector's configuration is asked for."""

_WHAT = "workers' tokens"
_LINES = "lines about tokens"
_ADD = f"`updraft head init` again on a head that it has made, else {EXISTING}; then restart updraft"


def judge(token: Answer, key: str, seen: CollectorSeen) -> Iterator[Finding]:
    """A worker's token can be made, and the collector takes it."""
    if token.error is not None:
        # The collector names the keys that it has: only where it has ours is something else amiss.
        missing = bool(seen.issuers) and key not in seen.issuers
        why = f"the collector has no key {key}" if missing else short(token.error)
        yield POOL.problem(
            _WHAT,
            f"no token can be made: {why}",
            f"make the signing key {key} on the head, as root; {EXISTING}",
        )
        return
    refused = [right for right, identity in token.value.items() if not identity]
    if refused:
        yield POOL.problem(
            _WHAT,
            f"a token can be made, and the collector doesn't take it ({', '.join(refused)})",
            f"allow worker-*@… these rights at the collector, and the key {key} there; {EXISTING}",
        )
        return
    identity = next(iter(token.value.values()), "")
    yield POOL.ok(_WHAT, f"one was made, and the collector took it as {identity}")


def lines(seen: CollectorSeen, *, on_head: bool) -> Iterator[Finding]:
    """The collector's configuration has what keeps a stolen token from being good for much."""
    if seen.settings is None:
        yield POOL.skipped(_LINES, "the collector tells nothing of its configuration")
        return
    lacking = list(_lacking(seen.settings, on_head=on_head))
    for text, remedy in lacking:
        yield POOL.warning(_LINES, text, remedy)
    if not lacking:
        text = "each machine has a token of its own, good for that machine, and revoked when it is gone"
        yield POOL.ok(_LINES, text)


def unseen(machines: Mapping[str, int]) -> Iterator[Finding]:
    """Machines whose tokens somebody else could have had; how many, by cloud."""
    for cloud, count in sorted(machines.items()):
        yield POOL.warning(
            f"tokens on {cloud}",
            f"{counted(count, 'machine')} behind a broker or a forwarded address had tokens within the last "
            "day, and their consoles, which tell who asks for them, showed nothing",
            "have that cloud show consoles; what a thief of user-data could do is in explanation/security.md",
        )


def _lacking(settings: Mapping[str, str], *, on_head: bool) -> Iterator[tuple[str, str]]:
    """What is less safe than it can be, each with the remedy."""
    if not any(is_ruled(settings.get(name, "")) for name in SETTINGS[:2]):
        yield (
            "the collector lacks updraft's COLLECTOR_REQUIREMENTS, or has an earlier form of it: with one "
            "worker's token ads can be sent in others' names",
            _ADD,
        )
    if not on_head:
        yield (
            "updraft isn't on the head: what user-data hold is a token for all of a launch, as long as its "
            "machines may live, and it isn't revoked when they are gone",
            "run updraft on the head; until then, there, `updraft tokens revoke` (explanation/security.md)",
        )
        return
    if settings.get(OWN_SETTING, "").lower() != "true":
        yield (
            f"the head's configuration lacks {OWN_SETTING}: what user-data hold is a token for all of a "
            "launch, as long as its machines may live",
            _ADD,
        )
    if not settings.get(ENDED_SETTING):
        yield (
            f"the head's configuration lacks {ENDED_SETTING}: no token is revoked when its machine is gone",
            _ADD,
        )
