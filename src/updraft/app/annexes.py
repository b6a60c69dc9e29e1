"""What comes before an annex is written down: can its machines join, and what would it buy?"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from updraft.documents.annexes import AnnexPurchase, WouldBuy
from updraft.errors import LedgerError

if TYPE_CHECKING:
    from updraft.app.call import Call
    from updraft.checks import Finding
    from updraft.config.model import Settings
    from updraft.core.model import Annex, Plan

_DEADLINE = 7.5
_BLOCKING = ("collector", "right ", "workers' tokens", "broker of ", "address for machines")


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
    from updraft.app.look import looked

    with looked(call, lambda ledger: _With(ledger, annex)) as (_, _, decided):
        yield decided


def would_buy(decided: "Plan", name: str) -> WouldBuy:
    """The launches for an annex, and how it would stand."""
    from updraft.core.model import Launch

    launches = [
        AnnexPurchase(one.offer.key, one.count, one.offer.price, one.count * one.offer.resources.cpus)
        for one in decided.actions
        if isinstance(one, Launch) and one.annex is not None and one.annex.name == name
    ]
    return WouldBuy(launches, next(one for one in decided.annexes if one.name == name))
