"""What operators have decided of clouds at run time: one note in the ledger, stronger than the file.

It is kept over restarts. Whoever changes it does so in one transaction with the event that tells of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from updraft.core.model import Reason
from updraft.core.settings import CLOUD_DISABLED, CLOUD_DRAINED, CloudRule, Limits, Policy
from updraft.ledger.reader import Queries
from updraft.ledger.store import Ledger

NOTE = "clouds"
EVENT = "cloud"


@dataclass(frozen=True, slots=True)
class Said:
    """Who decided something, and when."""

    who: Annotated[str, "By whom."]
    at: Annotated[float, "When."]


@dataclass(frozen=True, slots=True)
class Override:
    """What was decided of one cloud; what is None or missing is as the file says.

    `leaving` is True where its machines are to go. `limits` are ceilings by the names of `Limits`; None is no
    ceiling, whatever the file says. `switched` and `limited` say by whom and when.
    """

    enabled: bool | None = None
    leaving: bool = False
    switched: Said | None = None
    limits: Mapping[str, float | None] = field(default_factory=dict)
    limited: Said | None = None

    @property
    def empty(self) -> bool:
        """Is all as the file says?"""
        return self.enabled is None and not self.limits


AS_THE_FILE_SAYS = Override()


def overrides(ledger: Queries) -> dict[str, Override]:
    """What was decided of each cloud of which something was."""
    return {name: _read(doc) for name, doc in (ledger.noted(NOTE) or {}).items()}


def decide(
    ledger: Ledger, cloud: str, change: Callable[[Override], Override], reason: Reason, at: float
) -> Override:
    """Change what is decided of a cloud, and write the event; returns what is decided now."""
    with ledger.together():
        every = overrides(ledger)
        new = change(every.get(cloud, AS_THE_FILE_SAYS))
        every[cloud] = new
        ledger.note(NOTE, {name: asdict(one) for name, one in every.items() if not one.empty}, at)
        ledger.event(at, EVENT, cloud, reason)
    return new


def in_force(policy: Policy, decided: Mapping[str, Override]) -> Policy:
    """The policy of the file with what was decided since; of clouds that the file doesn't have, nothing."""
    mine = {name: one for name, one in decided.items() if name in policy.clouds and not one.empty}
    if not mine:
        return policy
    rules = {name: _rule(name, policy.rule(name), one) for name, one in mine.items()}
    limits = {
        name: replace(policy.cloud_limits.get(name, Limits()), **one.limits)  # type: ignore[arg-type]
        for name, one in mine.items()
        if one.limits
    }
    return replace(
        policy,
        clouds={**policy.clouds, **rules},
        cloud_limits={**policy.cloud_limits, **limits},
    )


def _rule(name: str, rule: CloudRule, decided: Override) -> CloudRule:
    if decided.enabled is None:
        return rule
    if decided.enabled:
        return replace(rule, closed=None, leaving=None)
    who = decided.switched.who if decided.switched else "an operator"
    leaving = Reason(CLOUD_DRAINED, f"{who} disabled cloud {name}, and its machines leave")
    return replace(
        rule,
        closed=Reason(CLOUD_DISABLED, f"{who} disabled cloud {name}"),
        leaving=leaving if decided.leaving else None,
    )


def _read(doc: Mapping[str, Any]) -> Override:
    said = {name: Said(**doc[name]) if doc.get(name) else None for name in ("switched", "limited")}
    limits = doc.get("limits") or {}
    return Override(doc.get("enabled"), bool(doc.get("leaving")), limits=dict(limits), **said)
