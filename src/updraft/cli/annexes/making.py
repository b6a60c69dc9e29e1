"""What comes before an annex is written down: what is asked for, can its machines join, what would it buy."""

import getpass
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.config.values.units import seconds
from updraft.errors import LedgerError, ProblemFound, UsageError

if TYPE_CHECKING:
    from updraft.checks import Finding
    from updraft.cli.main import Call
    from updraft.config.model import Settings
    from updraft.core.model import Annex, Plan

ME, ALL = "me", "all"
_LONGEST_LAYER = 256 * 1024
_DEADLINE = 7.5
_BLOCKING = ("collector", "right ", "workers' tokens", "broker of ", "address for machines")


class Span(click.ParamType):  # type: ignore[type-arg]
    """A duration with a unit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> float:
        """The duration in seconds."""
        if isinstance(value, float):
            return value
        try:
            return seconds(value)
        except ValueError as error:
            self.fail(str(error), param, context)


SPAN = Span()


def me() -> str:
    """Whose jobs "me" means: the user who called, also through sudo."""
    user = getpass.getuser()
    return os.environ.get("SUDO_USER", user) if user == "root" else user


def tags_of(pairs: Sequence[str]) -> dict[str, str]:
    """Tags from `K=V`. Raises UsageError for what is none, or said twice."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in found:
            raise UsageError(f"--tag takes KEY=VALUE, each key once, and not {pair[:80]!r}")
        found[key] = value
    return found


def layer_of(path: Path | None) -> str:
    """The text of the file with user-data; "" without one. Raises UsageError for what can't be read."""
    if path is None:
        return ""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}") from error
    if len(text) > _LONGEST_LAYER or not text.strip():
        raise UsageError(
            f"{path}: user-data is a text of at most {_LONGEST_LAYER // 1024} KiB, and not empty"
        )
    return text


# -------------------------------------------------------------------------------- can its machines join


def check_reach(settings: "Settings", annex: "Annex") -> Sequence["Finding"]:
    """What may keep its machines from the pool; nothing where all is well. Nothing is bought for it."""
    from updraft.app.wiring import access, asker, collectors_of
    from updraft.app.wiring import brokers as brokers_of
    from updraft.checks import ask, brokers, pool, reach
    from updraft.condor.support.probe import PoolProbe

    rights = access(settings)
    probe = PoolProbe(rights)
    finders = {name: find for name, find in brokers_of(settings).items() if name == annex.worker_class}
    try:
        asked = {
            **pool.questions(probe, _DEADLINE - 1),
            **{
                f"broker {name}": one
                for name, one in brokers.questions(probe, finders, _DEADLINE - 1).items()
            },
            **reach.questions(partial(collectors_of, settings, asker(settings)), _DEADLINE - 1),
        }
        answers = ask(asked, _DEADLINE)
        facts = pool.PoolFacts(
            now=time.time(),
            collector=answers["collector"],
            schedds=answers["schedds"],
            tools=answers["tools"],
            drain_tool=bool(probe.tool("condor_drain")),
            token=answers["token"],
            signing_key=rights.signing_key,
        )
        found = [
            *pool.judge(facts),
            *brokers.judge({name: answers[f"broker {name}"] for name in finders}),
            *reach.judge(answers["reach"], _proven(settings, annex)),
        ]
    finally:
        probe.close()
    return [one for one in found if one.state != "ok" and one.what.startswith(_BLOCKING)]


def _proven(settings: "Settings", annex: "Annex") -> dict[str, bool]:
    from updraft.checks.reach import joined_from
    from updraft.ledger.reader import Reader

    clouds = settings.clouds_of(settings.classes[annex.worker_class])
    try:
        with Reader(settings.pool.ledger) as reader:
            return joined_from(clouds, annex.worker_class, reader.view(time.time()).machines)
    except LedgerError:
        return dict.fromkeys(clouds, False)


def refuse(found: Sequence["Finding"]) -> None:
    """Say what is doubtful; raises ProblemFound, in one sentence, where its machines could not join."""
    for one in found:
        if one.state == "warning":
            click.echo(f"updraft: {one.text}; {one.remedy}", err=True)
    bad = [one for one in found if one.state == "problem"]
    if bad:
        text = f"its machines could not join: {bad[0].text}; {bad[0].remedy}"
        raise ProblemFound(f"{text}; nothing was asked for (--unchecked asks all the same)")


# ---------------------------------------------------------------------------------- what it would buy


class _With:
    """A ledger with one annex more, which is not written."""

    def __init__(self, ledger: Any, annex: "Annex") -> None:
        self._ledger, self._annex = ledger, annex

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def annexes(self) -> tuple["Annex", ...]:
        """Those that there are, and this one."""
        return (*self._ledger.annexes(), self._annex)


@contextmanager
def imagined(call: "Call", annex: "Annex") -> Iterator["Plan"]:
    """What would be done now if this annex were asked for."""
    from updraft.cli.running.look import looked

    with looked(call, lambda ledger: _With(ledger, annex)) as (_, _, decided):
        yield decided


def would_buy(decided: "Plan", name: str) -> dict[str, Any]:
    """The launches for an annex, and how it would stand, as a document."""
    from updraft.core.model import Launch

    launches = [
        {
            "offer": one.offer.key,
            "count": one.count,
            "price": one.offer.price,
            "cores": one.count * one.offer.resources.cpus,
        }
        for one in decided.actions
        if isinstance(one, Launch) and one.annex is not None and one.annex.name == name
    ]
    return {
        "launches": launches,
        "outlook": next(asdict(one) for one in decided.annexes if one.name == name),
    }
