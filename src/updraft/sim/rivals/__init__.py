"""Rival policies for the simulator: how others decide, written from the descriptions of their rules.

Each is a stateful callable `decide(snapshot, policy) -> Plan`, made anew for each simulation by its
factory. It sees of a snapshot what its original sees, and keeps to the site's limits where the original has
a setting for them. What was chosen where a description is silent stands in docs/explanation/rivals.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from updraft.sim.rivals import cloud_scheduler, cobald, csv2, elastiq, glideinwms, static
from updraft.sim.rivals.cloud_scheduler import CloudScheduler
from updraft.sim.rivals.cobald import Cobald
from updraft.sim.rivals.common import Decide
from updraft.sim.rivals.csv2 import Csv2
from updraft.sim.rivals.elastiq import ElastiqRule
from updraft.sim.rivals.glideinwms import GlideinWms
from updraft.sim.rivals.google import Google
from updraft.sim.rivals.static import Static

__all__ = ["RIVALS", "Decide", "Rival"]


@dataclass(frozen=True, slots=True)
class Rival:
    """A policy of others.

    `factory(workload=(), **settings)` makes it for one simulation: from the workload it takes what a site
    knows of its jobs beforehand (the largest of them, and the size of a static pool), the settings are the
    module's. `cycle` is how often it looks, in seconds: at a longer cycle it does less often what it does.
    `about` is one sentence, `source` where its rule is described.
    """

    name: str
    factory: Callable[..., Decide]
    cycle: float
    about: str
    source: str


_ELASTIQ = "elastiq 1.0.4, github.com/dberzano/elastiq"
_COBALD = "COBalD and TARDIS, github.com/MatterMiners"

_ALL = (
    Rival(
        "elastiq-default",
        partial(ElastiqRule, elastiq.DEFAULT),
        15.0,
        "jobs divided by 4, machines on their way credited for 10 minutes, idle hosts shot after an hour",
        f"{_ELASTIQ}, the defaults of its code",
    ),
    Rival(
        "elastiq-sample",
        partial(ElastiqRule, elastiq.SAMPLE),
        15.0,
        "elastiq that waits until 10 jobs have waited for 100 s",
        f"{_ELASTIQ}, the sample configuration that it ships",
    ),
    Rival(
        "elastiq-ecm",
        partial(ElastiqRule, elastiq.ECM),
        15.0,
        "elastiq as ECM sets it: slower looks, 20 minutes of credit, jobs divided by a machine's cores",
        "elastiq 0.9.10 as configured by ECM, github.com/CloudPadovana/ECM",
    ),
    Rival(
        "cloud-scheduler",
        partial(CloudScheduler, cloud_scheduler.DEFAULT),
        15.0,
        "a machine for each job, one at a time for each user, in fair shares; idle ones retire at once",
        "Cloud Scheduler 1.13, github.com/hep-gc/cloud-scheduler",
    ),
    Rival(
        "csv2",
        partial(Csv2, csv2.DEFAULT),
        10.0,
        "what all jobs ask for less what all machines have, five machines at a time and nine on their way",
        "Cloud Scheduler 2.11, github.com/hep-gc/cloudscheduler",
    ),
    Rival(
        "google",
        Google,
        60.0,
        "idle jobs' cores divided by a machine's, rounded up, once a minute; idle machines are deleted",
        "the HTCondor autoscaler of github.com/GoogleCloudPlatform/cluster-toolkit",
    ),
    Rival(
        "cobald",
        partial(Cobald, cobald.DEFAULT),
        30.0,
        "a core more or less each second as the machines are used, without a look at the queue",
        f"{_COBALD}, the defaults of the linear controller",
    ),
    Rival(
        "cobald-slow",
        partial(Cobald, cobald.SLOW),
        30.0,
        "COBalD at a tenth of its rate, which suits pools of some hundred cores better",
        f"{_COBALD}, with the rate that did best of those tried",
    ),
    Rival(
        "glideinwms",
        partial(GlideinWms, glideinwms.DEFAULT),
        60.0,
        "a third of what is missing is asked for each minute; machines leave after 400 s without a job",
        "the frontend of glideinWMS 3.10, github.com/glideinWMS/glideinwms",
    ),
    Rival(
        "static",
        partial(Static, static.PEAK),
        60.0,
        "as many machines as the workload would fill at its peak if nobody waited, all the time",
        "no system: what a site has that isn't elastic and makes nobody wait",
    ),
    Rival(
        "static-mean",
        partial(Static, static.MEAN),
        60.0,
        "as many machines as the workload fills in the mean, all the time",
        "no system: the cheapest pool of a fixed size that gets the work done",
    ),
)

RIVALS: Mapping[str, Rival] = MappingProxyType({rival.name: rival for rival in _ALL})
