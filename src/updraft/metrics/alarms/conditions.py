"""What people are told of, as it stands in a picture of the ledger. Values in, values out."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from updraft.core.machines.cooldowns import CLOUD_ERROR, NEVER_JOINED
from updraft.core.reasons import counted, moment, spell
from updraft.errors import AuthFailed
from updraft.metrics.reading import FiguresRead

SOON = 7 * 86400.0
"""How many seconds before its end a credential is told of."""
IN_A_ROW = 3
"""So many boots that failed one after the other are told of."""
LOST = "jobs_lost"
_STANDBY = "second-controller"  # see `daemon.election`
_BUDGET = ("budget-spent", "budget-nearly-spent", "spending-unknown", "price-unknown")
"""Of warnings; see `core.limits.spending`."""


class AlarmKind(StrEnum):
    """What an alarm is about; each kind has a limit of its own on how often it is told."""

    NOT_ACTING = "not-acting"
    BUDGET = "budget"
    BOOTS_FAIL = "boots-fail"
    CREDENTIALS = "credentials"
    JOB_LOST = "job-lost"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that stands: its kind, a `key` that is the same as long as it is the same, one sentence."""

    kind: AlarmKind
    key: str
    text: str


def alarms(picture: FiguresRead, lost_before: float = 0.0) -> list[Alarm]:
    """All that stands. `lost_before` is how many lost jobs were told of already."""
    return [
        *_not_acting(picture),
        *_budgets(picture.cycle),
        *_boots(picture.cycle),
        *_credentials(picture),
        *_lost(picture, lost_before),
    ]


def lost_jobs(picture: FiguresRead) -> float:
    """How many jobs were lost since the ledger was made."""
    return sum(picture.counters.get(LOST, {}).values())


def _not_acting(picture: FiguresRead) -> Iterator[Alarm]:
    kind, state = AlarmKind.NOT_ACTING, picture.state
    if picture.unread is not None:
        yield Alarm(kind, "unread", f"nobody knows whether the controller acts: {picture.unread}")
    elif state.get("looked_at") is None:
        yield Alarm(kind, "down", "no controller has looked at this pool yet")
    elif not picture.up:
        yield Alarm(
            kind, "down", f"no controller is at work: this one last looked at {moment(state['looked_at'])}"
        )
    elif not picture.acting:
        standing = state.get("standing") or {"code": "unknown", "text": "nobody wrote down why"}
        if standing["code"] != _STANDBY:
            yield Alarm(kind, "standing", f"the controller does not act: {standing['text']}")


def _budgets(cycle: Any) -> Iterator[Alarm]:
    for warning in cycle.get("warnings", []):
        if warning["code"] in _BUDGET:
            whose = warning["text"].partition(" may spend ")[0]
            yield Alarm(AlarmKind.BUDGET, f"{warning['code']} {whose}", warning["text"])


def _boots(cycle: Any) -> Iterator[Alarm]:
    for rest in cycle.get("cooldowns", []):
        if rest["failures"] >= IN_A_ROW and rest["reason"]["code"] in (NEVER_JOINED, CLOUD_ERROR):
            yield Alarm(AlarmKind.BOOTS_FAIL, f"{rest['scope']} {rest['key']}", rest["reason"]["text"])


def _credentials(picture: FiguresRead) -> Iterator[Alarm]:
    for credential, end in picture.expiries.items():
        left = end - picture.now
        several = credential.startswith("cloud ")
        whose = f"the credentials of {credential}" if several else credential
        if left <= 0:
            text = f"{whose} {'have' if several else 'has'} ended at {moment(end)}"
            yield Alarm(AlarmKind.CREDENTIALS, credential, text)
        elif left <= SOON:
            in_ = f"in {spell(round(left / 60) * 60)}"
            text = f"{whose} {'end' if several else 'ends'} at {moment(end)}, {in_}"
            yield Alarm(AlarmKind.CREDENTIALS, credential, text)
    for row in picture.cycle.get("clouds", []):
        silent = row.get("silent")
        if silent is not None and silent["reason"]["code"] == AuthFailed.code:
            text = f"cloud {row['name']} refuses the credentials: {silent['reason']['text']}"
            yield Alarm(AlarmKind.CREDENTIALS, f"cloud {row['name']}", text)


def _lost(picture: FiguresRead, before: float) -> Iterator[Alarm]:
    more = int(lost_jobs(picture) - before)
    if more > 0:
        text = (
            f"{counted(more, 'job')} ended with a machine that updraft ended without an order or a deadline; "
            "this must not happen: please report it, with `updraft events`"
        )
        yield Alarm(AlarmKind.JOB_LOST, "jobs", text)
