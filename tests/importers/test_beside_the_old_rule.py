"""An imported configuration in the simulator, beside the old program's own rule: the same jobs get machines.

The jobs are of one shape, so that what differs is the rule and not what each of them knows of jobs.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.sim.simtools import engine, shape
from updraft import config, importers
from updraft.core.settings import Policy
from updraft.sim.engine import Engine
from updraft.sim.rivals import cloud_scheduler, csv2
from updraft.sim.rivals.elastiq import ElastiqRule, Numbers
from updraft.sim.workloads.workload import Arrival, burst

pytestmark = pytest.mark.slow
ALONE = ("ada",)
HOUR = 3600.0


def imported(folder: Path, **files: str) -> Policy:
    paths = []
    for name, text in files.items():
        paths.append(folder / name)
        paths[-1].write_text(text)
    (folder / "updraft.toml").write_text(importers.run(paths).toml)
    policy = config.load(folder / "updraft.toml").policy()
    return replace(policy, timings=replace(policy.timings, cycle=5.0))  # elastiq's own tick


def jobs(count: int, at: float = 0.0, seconds: float = 600) -> tuple[Arrival, ...]:
    return burst(count, at=at, shapes=(shape(seconds),), owners=ALONE)


def run(policy: Policy, work: tuple[Arrival, ...], seconds: float, **more: Any) -> Engine:
    """For so long, or until all jobs that arrive are done."""
    clouds: dict[str, dict[str, Any]] = {name: {} for name in policy.cloud_limits}
    sim = engine(policy, clouds, workload=work, **more)
    sim.run(seconds, lambda: len(sim.pool.jobs) == len(work) and sim.pool.finished())
    return sim


def rest(sim: Engine, seconds: float, machines: int) -> None:
    """On, until no job and no more than so many machines are left, at most for so long."""
    sim.run(seconds, lambda: sim.pool.finished() and sim.alive() <= machines)


# ------------------------------------------------------------------------------------------------- elastiq


def elastiq_conf(numbers: Numbers) -> str:
    """What elastiq's sample says, with the numbers of its rule."""
    return (
        f"[elastiq]\nwaiting_jobs_threshold = {numbers.threshold}\n"
        f"waiting_jobs_time_s = {numbers.waiting:g}\n"
        f"n_jobs_per_vm = {numbers.per_vm}\nidle_for_time_s = {numbers.idle:g}\n"
        f"estimated_vm_deploy_time_s = {numbers.deploy:g}\n[quota]\nmin_vms = {numbers.min_vms}\n"
        f"max_vms = {numbers.max_vms}\n[ec2]\nimage_id = worker\nflavour = small\n"
    )


SAMPLE = Numbers(threshold=10, waiting=100, per_vm=2, max_vms=8)


@pytest.mark.parametrize(
    ("work", "served"),
    [(jobs(9), 0), (jobs(10), 10), (jobs(40), 40), ((*jobs(6), *jobs(6, at=900)), 12)],
    ids=["too few", "as many as it takes", "many", "few, and then more"],
)
def test_elastiqs_threshold_holds_the_same_jobs_back(
    work: tuple[Arrival, ...], served: int, tmp_path: Path
) -> None:
    policy = imported(tmp_path, **{"elastiq.conf": elastiq_conf(SAMPLE)})
    end = 2 * HOUR if served else HOUR / 4
    old = run(policy, work, end, decide=ElastiqRule(SAMPLE, flavor="small"))
    new = run(policy, work, end)
    assert (old.result().completed, new.result().completed) == (served, served)
    assert (old.result().launched > 0) is (new.result().launched > 0) is (served > 0)


def test_nobody_gets_a_machine_before_elastiqs_wait_is_over(tmp_path: Path) -> None:
    policy = imported(tmp_path, **{"elastiq.conf": elastiq_conf(SAMPLE)})
    more: dict[str, Any]
    for more in ({}, {"decide": ElastiqRule(SAMPLE, flavor="small")}):
        assert run(policy, jobs(20), 95, **more).result().launched == 0
        assert run(policy, jobs(20), 200, **more).result().launched > 0


def test_elastiqs_quotas_hold(tmp_path: Path) -> None:
    numbers = Numbers(per_vm=2, max_vms=3, min_vms=1, idle=300)
    policy = imported(tmp_path, **{"elastiq.conf": elastiq_conf(numbers)})
    more: dict[str, Any]
    for more in ({}, {"decide": ElastiqRule(numbers, flavor="small")}):
        sim = run(policy, jobs(30), 1200, **more)
        assert sim.alive() == 3
        rest(sim, 2 * HOUR, 1)
        sim.run(300)
        assert (sim.alive(), sim.result().completed) == (1, 30)


# ---------------------------------------------------------------------------------- Cloud Scheduler and csv2


def test_cloud_scheduler_and_what_comes_of_its_files_serve_the_same_jobs(tmp_path: Path) -> None:
    resources = "[f]\ncloud_type: OpenStackNative\nauth_url: https://k.example.org/v3\n"
    resources += "vm_slots: 5\nvm_keep_alive: 5\n"
    scheduler = "[global]\ncondor_register_time_limit: 15\nmax_keepalive: 60\n[job]\ndefault_VMAMI: worker\n"
    policy = imported(tmp_path, **{"cloud_resources.conf": resources, "cloud_scheduler.conf": scheduler})
    rule = cloud_scheduler.CloudScheduler(cloud_scheduler.Settings(keep_alive=300.0))
    more: dict[str, Any]
    for more in ({}, {"decide": rule}):
        sim = run(policy, jobs(20), 500, **more)
        assert 0 < sim.alive() <= 5, "vm_slots"
        rest(sim, 3 * HOUR, 0)
        assert (sim.alive(), sim.result().completed) == (0, 20)


def test_csv2_and_what_comes_of_its_export_serve_the_same_jobs(tmp_path: Path) -> None:
    row = {
        "group_name": "g",
        "cloud_name": "f",
        "cloud_type": "openstack",
        "vm_image": "worker",
        "authurl": "https://k.example.org/v3",
        "cores_ctl": 8,
        "ram_ctl": -1,
        "vm_keep_alive": 300,
    }
    policy = imported(tmp_path, **{"clouds.json": json.dumps([row])})
    more: dict[str, Any]
    for more in ({}, {"decide": csv2.Csv2(csv2.Settings(keep_alive=300.0))}):
        sim = run(policy, jobs(20), 500, **more)
        assert sim.alive() > 0
        assert sum(one.resources.cpus for one in sim.ledger.machines.values() if one.ended_at is None) <= 8
        rest(sim, 3 * HOUR, 0)
        assert (sim.alive(), sim.result().completed) == (0, 20)
