"""Decides on users' requests for annexes of their own, by what the last look at pool and clouds has shown.

A request is a stranger's text. Its fields are few and of one kind each; what else it has refuses it. Whose it
is comes from the kernel. A user names no user-data (it would run as root, where the launch's token is), no
tags (clouds have rights by them), no security groups and nobody else's jobs.
"""

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from updraft.clouds.cloud import Cloud
from updraft.core.annexes.allowance import allowance_of, refusal, used
from updraft.core.model import Annex, AnnexOutlook, MachineOutlook, Snapshot
from updraft.core.settings import AnnexAllowance, Policy
from updraft.daemon import annexing
from updraft.daemon.annex_requests import wire
from updraft.daemon.annexing import AnnexRequest
from updraft.daemon.election import STARTING
from updraft.daemon.reporting import Cycle
from updraft.documents.annexes import AnnexMachine, annex_row
from updraft.errors import ProblemFound, UsageError
from updraft.ledger import annexes as book
from updraft.ledger.store import Ledger
from updraft.ledger.tokens import expiries

STALE = 300.0  # seconds: by an older look nobody is told what things cost
TOLD = "leases"
"""The ledger's note of which clouds tell their machines of a later lease."""
_LONGEST_TEXT = 64
_MOST_TEXTS = 8
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class DeskView:
    """What the daemon has seen last, and whether it acts; `starting` where it will within seconds."""

    snapshot: Snapshot
    policy: Policy
    outlooks: tuple[AnnexOutlook, ...] = ()
    acting: bool = True
    starting: bool = False
    machines: tuple[MachineOutlook, ...] = ()
    told: Mapping[str, bool] = field(default_factory=dict)


class Desk:
    """Answers users. Safe for many threads; requests that change something are taken one at a time."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._lock = threading.Lock()
        self._look: DeskView | None = None

    def seen(self, look: DeskView) -> None:
        """What is decided by from now on."""
        self._look = look

    def watch(self, cycle: Cycle, policy: Policy, clouds: Mapping[str, Cloud]) -> None:
        """The same, of one turn of the daemon's loop; which clouds tell leases is written down for others."""
        told = {name: cloud.traits.leases().told for name, cloud in clouds.items()}
        if self._look is None or told != self._look.told:
            self._ledger.note(TOLD, told, cycle.snapshot.now)
        plan, standing = cycle.plan, cycle.standing
        starting = standing is not None and standing.code in STARTING
        self.seen(
            DeskView(cycle.snapshot, policy, plan.annexes, standing is None, starting, plan.machines, told)
        )

    def answer(self, user: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to one question of this user. Raises UsageError or ProblemFound to refuse it.

        `create`: name, class, machines or cores, and duration, idle (seconds), spot, max_price, clouds,
        flavors, image, dry_run.
        `extend`: name, duration. `stop` and `delete`: name, kill_jobs. `list`: nothing, `status`: name.
        """
        fields = dict(question)
        verb = fields.pop("verb", "")
        verbs = {
            "create": self._create,
            "extend": self._extend,
            "stop": self._end,
            "delete": self._end,
            "list": self._list,
            "status": self._list,
        }
        if not isinstance(verb, str) or verb not in verbs:
            raise UsageError(
                "that is nothing that can be asked: create, extend, stop, delete, list or status"
            )
        look = self._current()
        allowance = allowance_of(user, look.policy)
        if allowance is None:
            raise UsageError(f"{user} may have no annexes here: its operator allows them in [annexes]")
        asking = DeskRequest(user, verb, Fields(fields), look, allowance, self._clock())
        with self._lock:
            return verbs[verb](asking)

    def _current(self) -> DeskView:
        look = self._look
        if look is None or look.starting:
            raise wire.StartingError("updraft has just started and doesn't act yet: ask again in a minute")
        if not look.acting or self._clock() - look.snapshot.now > STALE:
            raise ProblemFound("updraft doesn't act for the pool at the moment: ask again later")
        return look

    # ------------------------------------------------------------------------------------------- verbs

    def _create(self, asking: "DeskRequest") -> Mapping[str, Any]:
        fields, now = asking.fields, asking.now
        asked = AnnexRequest(
            name=fields.text("name"),
            owner=asking.user,
            worker_class=fields.text("class", ""),
            machines=fields.count("machines"),
            cores=fields.count("cores"),
            duration=fields.number("duration", annexing.DURATION),
            idle=fields.number("idle", annexing.IDLE),
            spot=fields.flag("spot"),
            max_price=fields.number("max_price", None),
            clouds=fields.texts("clouds"),
            flavors=fields.texts("flavors"),
            image=fields.text("image", ""),
        )
        dry_run = bool(fields.flag("dry_run"))
        fields.done()
        annex = annexing.annex_of(asked, asking.look.policy, now)
        mine = self._of(asking.user)
        self._allow(asking, annex, mine)
        if not dry_run:
            annex = book.create(self._ledger, annex, asking.who)
        return {
            "annex": shown(annex, asking.look),
            "dry_run": dry_run,
            **self._allowance(asking, [*mine, annex]),
        }

    def _extend(self, asking: "DeskRequest") -> Mapping[str, Any]:
        name, duration = asking.fields.text("name"), asking.fields.number("duration", None)
        asking.fields.done()
        if duration is None:
            raise UsageError("say with duration how long it is to last, counted from now")
        annex, now = self._mine(asking, name), asking.now
        until = annexing.extended(annex, duration, asking.look.policy, now)
        machines = asking.look.snapshot.ledger.machines
        annexing.check_told(annex, machines, asking.look.told)
        annexing.check_tokens(annex, until, now, machines, expiries(self._ledger))
        others = [one for one in self._of(asking.user) if one.name != annex.name]
        self._allow(asking, replace(annex, until=until), others)
        annex = book.extend(self._ledger, annex.name, until, asking.who, now)
        return {"annex": shown(annex, asking.look)}

    def _end(self, asking: "DeskRequest") -> Mapping[str, Any]:
        name, kill = asking.fields.text("name"), bool(asking.fields.flag("kill_jobs"))
        asking.fields.done()
        annex = self._mine(asking, name)
        change = book.stop if asking.verb == "stop" else book.delete
        ended = change(self._ledger, annex.name, asking.who, asking.now, kill_jobs=kill)
        return {"annex": shown(ended, asking.look)}

    def _list(self, asking: "DeskRequest") -> Mapping[str, Any]:
        name = asking.fields.text("name", "")
        asking.fields.done()
        mine = [self._mine(asking, name)] if name else self._of(asking.user)
        rows = [shown(one, asking.look) for one in mine]
        return {"annexes": rows, **self._allowance(asking, self._of(asking.user))}

    # ------------------------------------------------------------------------------------------ inside

    def _of(self, user: str) -> list[Annex]:
        return [one for one in self._ledger.annexes() if one.owner == user]

    def _mine(self, asking: "DeskRequest", name: str) -> Annex:
        """The user's annex of this name; of another's it isn't even said that it is there."""
        found = next((one for one in self._of(asking.user) if one.name == name), None)
        if found is None:
            raise UsageError(f"{asking.user} has no annex {name[:_LONGEST_TEXT]!r}")
        return found

    def _allow(self, asking: "DeskRequest", annex: Annex, mine: list[Annex]) -> None:
        no = refusal(annex, asking.allowance, mine, asking.look.snapshot, asking.now)
        if no is not None:
            raise UsageError(no.text)

    def _allowance(self, asking: "DeskRequest", annexes: list[Annex]) -> Mapping[str, Any]:
        use = used(annexes, asking.look.snapshot)
        return {"budget": asdict(asking.allowance), "used": asdict(use)}


@dataclass(frozen=True, slots=True)
class DeskRequest:
    """One question, and by what it is decided."""

    user: str
    verb: str
    fields: "Fields"
    look: DeskView
    allowance: AnnexAllowance
    now: float

    @property
    def who(self) -> str:
        """Who is said to have asked."""
        return f"user {self.user}"


class Fields:
    """The fields of a request, each read once and as one kind of value; UsageError says which is wrong."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._left = fields

    def text(self, name: str, missing: str | None = None) -> str:
        """A short plain text."""
        value = self._left.pop(name, missing)
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isprintable():
            raise UsageError(f"{name} has to be a text of at most {_LONGEST_TEXT} plain characters")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A few short plain texts; none where nothing is said."""
        values = self._left.pop(name, [])
        if not isinstance(values, list) or len(values) > _MOST_TEXTS:
            raise UsageError(f"{name} has to be a list of at most {_MOST_TEXTS} texts")
        return tuple(Fields({name: value}).text(name) for value in values)

    def count(self, name: str) -> int:
        """A whole number from 0; 0 where nothing is said."""
        value = self._left.pop(name, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
            raise UsageError(f"{name} has to be a whole number from 0 to {_MOST}")
        return value

    def number(self, name: str, missing: Any) -> Any:
        """A number from 0; `missing` where nothing is said."""
        value = self._left.pop(name, None)
        if value is None:
            return missing
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or not 0 <= value < 1e15 or not math.isfinite(value):
            raise UsageError(f"{name} has to be a number from 0")
        return float(value)

    def flag(self, name: str) -> bool | None:
        """True or false; None where nothing is said."""
        value = self._left.pop(name, None)
        if value is not None and not isinstance(value, bool):
            raise UsageError(f"{name} has to be true or false")
        return value

    def done(self) -> None:
        """Nothing else may have been said."""
        if self._left:
            name = next(iter(self._left))[:_LONGEST_TEXT]
            raise UsageError(f"{name!r} is nothing that a user may say here")


def shown(annex: Annex, look: DeskView) -> dict[str, Any]:
    """An annex as its owner is told of it: what was asked for, how it stood at the last look, its machines.

    The form is that of `updraft annex status --json`.
    """
    outlook = next((one for one in look.outlooks if one.name == annex.name), None)
    said = {one.key: one for one in look.machines}
    machines = []
    for record in look.snapshot.ledger.machines:
        if record.ended_at is None and record.variant and record.variant.annex == annex.name:
            one = said.get(record.key)
            phase, text = (str(one.phase), one.reason.text) if one else ("requested", "just asked for")
            text = f"{phase}: {text}" if one else text
            machines.append(AnnexMachine(record.id, record.cloud, record.flavor, text, phase))
    return annex_row(annex, outlook, machines)
