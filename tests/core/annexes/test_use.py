"""Who may use an annex: the machines' own START and the planner say the same, and nothing else is bought."""

from dataclasses import replace

import classad2
import pytest

from tests.rigs.snapshots import NOW, group, policy, snapshot, worker
from updraft.condor.demand.terms import terms_of
from updraft.core.annexes.use import ANNEX_ONLY, bound_to_annexes, may_use
from updraft.core.machines.cooldowns import image_key
from updraft.core.matching.match import judge
from updraft.core.model import Annex, CloudOffer, JobGroup, Launch, Reason, Resources
from updraft.core.plan import plan
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.terms import annex_requirement, takes

ANNEX = Annex("burst", "ann", "default", 2, 0, until=NOW + 3600, idle=900.0, since=NOW - 60)
SOLD = CloudOffer("c1", "z1", "small", "on-demand", Resources(2, 4096, 80_000_000), 0.1)


def jobs(owner: str, said: str = "") -> JobGroup:
    """One group whose ad says this, with the terms that are read from it."""
    ad = (
        f'[ MyType = "Job"; Owner = "{owner}"; RequestCpus = 1; RequestMemory = 1024; RequestDisk = 1024; '
        f"Requirements = true; {said} ]"
    )
    return group("g", 3, owner=owner, submitter=f"{owner}@pool", ad=ad, terms=terms_of(classad2.ClassAd(ad)))


@pytest.mark.parametrize("for_all", [False, True])
@pytest.mark.parametrize("owner", ["ann", "ANN", "ben"])
@pytest.mark.parametrize(
    "said",
    [
        "",
        "MayUseAWS = true",
        "MayUseAWS = false",
        'MayUseAWS = "True"',
        'TargetAnnexName = "burst"',
        'TargetAnnexName = "BURST"; MayUseAWS = false',
        'TargetAnnexName = "other"; MayUseAWS = true',
    ],
)
def test_the_planner_and_the_machines_take_the_same_jobs(owner: str, said: str, for_all: bool) -> None:
    annex, asking = replace(ANNEX, for_all=for_all), jobs(owner, said)
    verdict = judge(asking, imagine(worker(), SOLD, "img", "test", variant=annex.variant), NOW)
    assert (verdict.copies > 0) is may_use(asking, annex)


def test_the_schedds_half_keeps_a_job_from_all_but_its_annex() -> None:
    asks = classad2.ExprTree(annex_requirement())
    machines = {name: classad2.ClassAd({"AnnexName": name}) for name in ("burst", "other")}
    named, plain = classad2.ClassAd({"TargetAnnexName": "Burst"}), classad2.ClassAd()
    assert asks.eval(named, machines["burst"]) is True
    assert asks.eval(named, machines["other"]) is False
    assert asks.eval(named, plain) is not True
    assert asks.eval(plain, plain) is True


def test_only_machines_of_an_annex_say_anything_of_annexes() -> None:
    assert "Annex" not in takes()
    assert "Annex" not in takes(replace(ANNEX.variant, annex=""))


@pytest.mark.parametrize(
    ("owner", "annexes", "words"),
    [
        ("ann", (ANNEX,), "waits for room there"),
        ("ben", (ANNEX,), "takes the jobs of ann only"),
        ("ann", (), "there is none"),
        ("ann", (replace(ANNEX, until=NOW),), "there is none"),
        ("ann", (replace(ANNEX, stopped=Reason("x", "y")),), "there is none"),
    ],
)
def test_it_is_said_why_nothing_is_bought_for_jobs_of_an_annex(
    owner: str, annexes: tuple[Annex, ...], words: str
) -> None:
    asking = jobs(owner, 'TargetAnnexName = "burst"')
    reason = bound_to_annexes([asking, replace(jobs(owner), key="h")], annexes, NOW)
    assert set(reason) == {"g"}
    assert reason["g"].code == ANNEX_ONLY
    assert words in reason["g"].text


@pytest.mark.parametrize(("said", "bought"), [("", True), ('TargetAnnexName = "burst"', False)])
def test_a_job_that_names_an_annex_makes_nobody_buy_an_ordinary_machine(said: str, bought: bool) -> None:
    made = plan(snapshot(groups=[jobs("ann", said)], annexes=(ANNEX,)), policy())
    assert bool([one for one in made.actions if isinstance(one, Launch)]) is bought
    (outlook,) = made.groups
    assert (ANNEX_ONLY in [reason.code for reason in outlook.held_back]) is not bought


def test_groups_of_its_own_that_let_nobody_join_say_nothing_of_the_classs_image() -> None:
    mine = replace(ANNEX, security_groups=("sg-1", "sg-2")).variant
    assert image_key("default", "img", "c1", mine) != image_key("default", "img", "c1")
    assert image_key("default", "img", "c1", ANNEX.variant) == image_key("default", "img", "c1")
