"""One look at everything: all questions at the same time, then the findings in the order of the report."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from updraft.checks import brokers, clouds, host, leftovers, pool, proxies, role, tokens
from updraft.checks.asking import Answer, ask
from updraft.checks.finding import Finding
from updraft.checks.host import LedgerFacts
from updraft.checks.role import Held
from updraft.clouds.cloud import Cloud
from updraft.config.model import Settings
from updraft.core.leftovers import Judged
from updraft.ledger.identity import this_host

DEADLINE = 7.5
_FOR_CHILDREN = 1.0  # a child's own deadline ends a little earlier, so that its answer says which


class Probe(pool.Probe, brokers.Probe, Protocol):
    """All that is asked of a pool."""


@dataclass(frozen=True, slots=True)
class Site:
    """What is looked at. `clouds` make each cloud; `now` is the time of the look.

    `brokers` find the address of the broker of each class that is reached through one. `held` finds the role
    in the cloud that this machine was launched with, and who may use it; `people` may log in to it. `left`
    finds what updraft has made in the clouds; None where that isn't looked at. `groups_trusted` is whether
    updraft goes by jobs' accounting groups.
    """

    file: Path
    settings: Settings
    clouds: Mapping[str, Callable[[], Cloud]]
    probe: Probe
    signing_key: str
    ledger: LedgerFacts
    known_schedds: Sequence[str]
    now: float
    brokers: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    held: Callable[[], Held] = lambda: Held("")
    people: Sequence[str] = ()
    left: Callable[[], Sequence[Judged]] | None = None
    groups_trusted: bool = False


def look(site: Site, deadline: float = DEADLINE) -> Iterator[Finding]:
    """Ask all of it, for `deadline` seconds at most, and yield what it comes to."""
    squids = proxies.wanted(site.settings)
    answers = ask(_questions(site, squids, deadline), deadline)
    yield from _of_this_machine(site)
    yield from role.judge(answers["role"], site.people)
    yield from proxies.judge({one: answers[f"proxy: {one}"] for one in squids})
    yield from pool.judge(_pool_facts(site, answers))
    yield from tokens.unseen(site.ledger.unseen)
    yield from brokers.judge({name: answers[f"broker: {name}"] for name in site.brokers})
    for name in site.clouds:
        own = {which: answers[f"cloud {name}: {which}"] for which in clouds.ASKED}
        yield from clouds.judge(clouds.CloudFacts(name, site.settings, own))
        yield from host.ends(site.ledger, name, site.now)
    if site.left is not None:
        yield from leftovers.judge(answers["left"])
    for name in sorted({one.cloud for one in site.ledger.not_ending} - site.clouds.keys()):
        yield from host.ends(site.ledger, name, site.now)


def _questions(site: Site, squids: Iterable[str], deadline: float) -> Mapping[str, Callable[[], Any]]:
    asked: dict[str, Callable[[], Any]] = {
        f"pool: {name}": one for name, one in pool.questions(site.probe, deadline - _FOR_CHILDREN).items()
    }
    others = brokers.questions(site.probe, site.brokers, deadline - _FOR_CHILDREN)
    asked |= {f"broker: {name}": one for name, one in others.items()}
    asked["role"] = site.held
    if site.left is not None:
        asked["left"] = site.left
    asked |= {f"proxy: {one}": partial(proxies.fetches, one) for one in squids}
    for name, make in site.clouds.items():
        images = clouds.images_wanted(site.settings, name)
        asked |= {f"cloud {which}": one for which, one in clouds.questions(name, make, images).items()}
    return asked


def _of_this_machine(site: Site) -> Iterator[Finding]:
    yield from host.versions()
    yield from host.configuration(site.file, site.settings)
    yield from host.state_dir(site.settings.pool.state_dir)
    yield from host.identity(site.settings.pool.state_dir, this_host())
    yield from host.daemon(site.ledger)
    yield from host.boots(site.ledger)


def _pool_facts(site: Site, answers: Mapping[str, Answer]) -> pool.PoolFacts:
    return pool.PoolFacts(
        now=site.now,
        collector=answers["pool: collector"],
        schedds=answers["pool: schedds"],
        tools=answers["pool: tools"],
        drain_tool=bool(site.probe.tool("condor_drain")),
        token=answers["pool: token"],
        stranger=answers["pool: stranger"],
        signing_key=site.signing_key,
        known_schedds=site.known_schedds,
        warnings=site.ledger.warnings,
        trust_groups=site.groups_trusted,
        on_head=not site.settings.pool.collector,
    )
