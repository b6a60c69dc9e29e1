"""What `import` has written is given to `updraft plan`, beside the old program's own rule in the simulator.

The clouds are fake ones that sell the old flavors. Jobs for which the old rule starts machines have machines
launched for them: of the class, the cloud and the flavor that the old files name.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.pools.stubpool import StubPool
from tests.rigs.sim.simtools import engine, shape
from updraft import config, importers
from updraft.app import wiring
from updraft.cli import main
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Site, site_settings
from updraft.config.model import CloudTable, Settings
from updraft.core.slots.choice import chosen
from updraft.sim.rivals import cloud_scheduler, csv2
from updraft.sim.rivals.elastiq import ElastiqRule, Numbers
from updraft.sim.workloads.workload import burst

pytestmark = pytest.mark.slow
DATA = Path(__file__).parent / "data"
ANY = "TARGET.Cpus >= 1"
MEDIUM = "cldareapd.medium"


@dataclass(frozen=True)
class Old:
    """Files of an old program, its rule with the numbers that are in them, and the cores of what is sold."""

    files: tuple[str, ...]
    rule: Callable[[], Any]
    cores: Mapping[str, int]

    def sold(self, patterns: Sequence[str] = ("*",)) -> dict[str, Any]:
        """The flavors that a fake cloud sells, of these names and patterns."""
        return {
            name: {"cpus": cpus, "memory": f"{4 * cpus}GiB", "price": 0.05 * cpus}
            for name, cpus in self.cores.items()
            if chosen(name, patterns)
        }


ELASTIQ = Old(
    ("elastiq.conf",),
    lambda: ElastiqRule(Numbers(threshold=10, waiting=100, per_vm=4, max_vms=3), flavor=MEDIUM),
    {MEDIUM: 4, "m1.small": 1},
)
ECM = Old(
    ("ecm.conf",),
    lambda: ElastiqRule(
        Numbers(threshold=0, waiting=45, per_vm=2, max_vms=8, min_vms=1, idle=2400, deploy=1200),
        flavor=MEDIUM,
    ),
    {MEDIUM: 4, "m1.small": 1},
)
CS1 = Old(
    ("cs1/cloud_resources.conf", "cs1/cloud_scheduler.conf"),
    lambda: cloud_scheduler.CloudScheduler(cloud_scheduler.Settings(keep_alive=600.0)),
    {"c8-30gb": 8, "m1.large": 2, "m1.xlarge": 4, "tiny": 1},
)
CSV2 = Old(
    ("csv2/clouds.json", "csv2/group.json"),
    lambda: csv2.Csv2(csv2.Settings(keep_alive=300.0)),
    {"tiny": 1, "small": 2, "large": 8, "gpu": 8},
)

# The old rule takes the smallest flavor, ours the best by price: never those that are left out.
OF_GROUP = {("particles", "alder", "small"), ("particles", "alder", "large")}
OF_ALIAS = {("canada", "alder", "small"), ("canada", "alder", "large")}


def launches(old: Old, pool: StubPool, folder: Path, patch: pytest.MonkeyPatch, capsys: Any) -> set[Any]:
    """Class, cloud and flavor of what `updraft plan` would launch for waiting jobs, by the written file."""
    file = folder / "updraft.toml"
    file.write_text(importers.run([DATA / name for name in old.files]).toml)

    def fake(settings: Settings, name: str, cloud: CloudTable, _calls: None = None) -> Cloud:
        patterns: Any = cloud.settings.get("flavors", ["*"])
        made = site_settings(name, {"flavors": old.sold(patterns)})
        return FakeCloud(Site(name, made, _now), settings.pool.name).cloud

    patch.setattr(wiring, "HTCondorPool", lambda _access: pool)
    patch.setattr(wiring, "make_cloud", fake)
    assert main.call(["--config", str(file), "plan", "--json"]) == 0
    document: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    bought = [one["text"] for one in document["actions"] if one["reason"]["code"] == "demand"]
    found = [re.search(r"× (\S+) of class (\S+) on ([\w-]+)", text) for text in bought]
    return {(one[2], one[3], one[1]) for one in found if one}


def _now() -> float:
    return 0.0


def started(old: Old, folder: Path, count: int) -> int:
    """How many machines the old rule starts for so many jobs within a quarter of an hour."""
    policy = config.load(folder / "updraft.toml").policy()
    clouds = {name: {"flavors": old.sold()} for name in policy.cloud_limits}
    work = burst(count, shapes=(shape(600),), owners=("ada",))
    sim = engine(policy, clouds, workload=work, decide=old.rule())
    sim.run(900)
    return sim.result().launched


@pytest.mark.parametrize(
    ("old", "jobs", "requirements", "served"),
    [
        (ELASTIQ, 9, ANY, set()),
        (ELASTIQ, 10, ANY, {("default", "ec2", MEDIUM)}),
        (ECM, 5, ANY, {("default", "ec2", MEDIUM)}),
        (CS1, 20, 'VMType =?= "analysis"', {("analysis", "Alder", "c8-30gb")}),
        (CSV2, 20, 'group_name =?= "particles"', OF_ALIAS | OF_GROUP),
        (CSV2, 20, 'target_alias =?= "canada"', OF_ALIAS),
    ],
    ids=["elastiq: too few", "elastiq", "ecm", "cs1", "csv2", "csv2: an alias"],
)
def test_the_written_configuration_has_machines_launched_for_the_jobs_that_had_them(
    old: Old,
    jobs: int,
    requirements: str,
    served: set[tuple[str, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = launches(old, StubPool(requirements, idle=jobs), tmp_path, monkeypatch, capsys)
    assert (started(old, tmp_path, jobs) > 0) is bool(served)
    assert bool(found) is bool(served)
    assert found <= served


def test_jobs_of_a_group_that_the_old_files_do_not_have_get_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    strangers = StubPool('group_name =?= "another"', idle=20)
    assert launches(CSV2, strangers, tmp_path, monkeypatch, capsys) == set()
