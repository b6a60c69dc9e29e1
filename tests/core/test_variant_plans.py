"""Whatever jobs say: nobody lands where they may not, limits hold, and who says nothing is as ever."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rigs import snapshots
from tests.rigs.bindings import htcondor2  # noqa: F401 - its functions are part of the language of ads
from tests.rigs.snapshots import NOW, POOL, group, policy, snapshot
from updraft.core.matching.bulk import judge_all
from updraft.core.matching.memory import Memo
from updraft.core.model import CloudOffer, JobGroup, Known, Launch, Offer, Resources, Snapshot, Terms
from updraft.core.plan import plan
from updraft.core.settings import Limits, Policy, Timings, WorkerClass
from updraft.core.slots.catalogue import learned
from updraft.core.slots.kinds import template
from updraft.core.slots.offers import OfferCatalogue
from updraft.core.slots.variants import wanted

SOLD = (
    CloudOffer("c1", "z1", "small", "on-demand", Resources(2, 4096, 20_000_000), 0.1),
    CloudOffer("c1", "z1", "large", "on-demand", Resources(8, 16384, 80_000_000), 0.36),
)
CLASS = WorkerClass(
    "default", "g1", ("c1",), images={"c1": "img"}, images_allowed=("alma*",), networks_allowed=("n1",),
    vm_types=("gpu",), offered_layers=("cvmfs", "root"), keep_alive_max=3600.0,
)  # fmt: skip
MEMO = Memo()


def jobs(key: str, owner: str, terms: Terms, idle: int) -> JobGroup:
    """Jobs whose ad says what their terms do."""
    said = {
        "UpdraftImage": terms.images.get("", ""),
        "UpdraftNetwork": terms.networks.get("", ""),
        "UpdraftLayers": ",".join(terms.layers),
    }
    words = "; ".join(f'{name} = "{value}"' for name, value in said.items() if value)
    wants = f'TARGET.VMType == "{terms.label}"' if terms.label else "true"
    ad = (
        f'[ MyType = "Job"; Owner = "{owner}"; RequestCpus = 1; RequestMemory = 1024; RequestDisk = 1024; '
        f"Requirements = {wants}; {words} ]"
    )
    return group(key, idle, owner=owner, submitter=f"{owner}@pool", ad=ad, terms=terms)


terms = st.builds(
    Terms,
    images=st.sampled_from([{}, {}, {"": "alma9"}, {"": "alma10"}, {"": "img"}, {"": "windows"}]),
    networks=st.sampled_from([{}, {}, {"": "n1"}, {"": "n2"}]),
    layers=st.sampled_from([(), (), ("cvmfs",), ("root", "cvmfs")]),
    label=st.sampled_from(["", "", "gpu", "default", "cpu"]),
    keep_alive=st.sampled_from([None, None, 60.0, 9000.0]),
)
queues = st.lists(st.tuples(st.sampled_from(["ann", "ben", "cy"]), terms, st.integers(1, 40)), max_size=6)


def look(groups: Sequence[JobGroup], rules: Policy) -> Snapshot:
    """What the controller would see: real offers, real kinds, real matching."""
    offers, kinds = OfferCatalogue().stock(rules, SOLD, {}, wants=wanted(groups, rules))
    verdicts = judge_all(groups, list(kinds.values()), NOW, MEMO)
    return snapshot(groups=groups, offers=offers, kinds=kinds, verdicts=verdicts)


def may(one: JobGroup, offer: Offer) -> bool:
    """The rule in words, without any ad: a job's choice is what the machine has; what was made for somebody
    or for a choice takes nobody else."""
    made = offer.variant
    assert not made.unreadable
    image, network = one.terms.images.get(""), one.terms.networks.get("")
    return (
        image in ((made.image,) if made.image else (None, offer.image))
        and network in ((made.network,) if made.network else (None,))
        and (set(one.terms.layers) == set(made.layers.split(",")) if made.layers else not one.terms.layers)
        and one.terms.label in ("", made.label or "default")
        and made.user in ("", one.owner)
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(queues, st.booleans())
def test_nobody_is_placed_where_terms_or_the_machine_refuse(
    queue: list[tuple[str, Terms, int]], owner_only: bool
) -> None:
    groups = [jobs(f"g{at}", *each) for at, each in enumerate(queue)]
    rules = policy(replace(CLASS, owner_only=owner_only))
    seen = look(groups, rules)
    for one in groups:
        for offer in seen.offers:
            fits = seen.verdicts[one.key, offer.kind].copies > 0
            assert fits == may(one, offer), (one.ad, offer.key)
    # The same of machines that are there: their own ads say no less than what was imagined of them.
    there = [learned(kind.key, template(kind.ad), None, 1) for kind in seen.kinds.values()]
    again = judge_all(groups, there, NOW, MEMO)
    assert all(again[pair].copies == verdict.copies for pair, verdict in seen.verdicts.items())
    for launch in launches(seen, rules):
        assert any(may(one, launch.offer) for one in groups)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(queues, st.booleans(), st.integers(0, 6), st.integers(0, 30), st.integers(0, 5))
def test_limits_hold_over_all_variants_together(
    queue: list[tuple[str, Terms, int]], owner_only: bool, machines: int, cores: int, most: int
) -> None:
    groups = [jobs(f"g{at}", *each) for at, each in enumerate(queue)]
    worker = replace(CLASS, owner_only=owner_only, max_machines=most)
    rules = policy(worker, limits=Limits(machines=machines, cores=cores))
    made = launches(look(groups, rules), rules)
    assert sum(launch.count for launch in made) <= min(machines, most)
    assert sum(launch.count * launch.offer.resources.cpus for launch in made) <= cores
    assert len({launch.key for launch in made}) == len(made)


def test_every_user_of_a_class_of_one_user_each_gets_a_machine() -> None:
    groups = [jobs(f"g{at}", f"u{at}", Terms(), 1) for at in range(20)]
    rules = policy(replace(CLASS, owner_only=True), timings=Timings(trial=100))
    made = launches(look(groups, rules), rules)
    assert sorted(launch.offer.variant.text for launch in made) == sorted(f"user=u{at}" for at in range(20))
    assert all(launch.count == 1 for launch in made)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(snapshots.snapshots())
def test_jobs_that_say_nothing_are_planned_for_as_if_nothing_could_be_said(seen: Snapshot) -> None:
    plain = policy()
    allowing = policy(
        *(
            replace(
                worker,
                images_allowed=("*",),
                networks_allowed=("*",),
                vm_types=("*",),
                offered_layers=("cvmfs",),
                keep_alive_max=9000.0,
            )
            for worker in plain.classes.values()
        )
    )
    for source in seen.schedds.values():
        assert not isinstance(source, Known) or wanted(source.value.groups, allowing) == {}
    assert plan(seen, allowing) == plan(seen, plain)


def launches(seen: Snapshot, rules: Policy) -> list[Launch]:
    assert seen.pool == POOL
    return [action for action in plan(seen, rules).actions if isinstance(action, Launch)]
