"""The hostile ads of the tests have a bad value for everything that updraft reads."""

from tests.rigs.pools.hostile import JOB_NAMES, MACHINE_NAMES
from updraft.condor.collector.odd_ads import PROJECTION
from updraft.condor.demand.conditions import ALWAYS
from updraft.condor.demand.finished import RUN_TIME_NAMES
from updraft.condor.demand.groups import FACTORY
from updraft.condor.demand.places import PLACES
from updraft.condor.demand.reread import MARKS
from updraft.condor.demand.terms import NAMES

# A schedd lets nobody change these. A job's state decides which of the jobs are counted.
NOT_THE_OWNERS = {"ClusterId", "ProcId", "JobUniverse", "Owner", "User", "JobStatus"}
# A collector knows ads by these: another value is another ad.
KEYS = {"Name", "MyAddress"}


def test_of_jobs_everything_that_is_read_may_be_bad() -> None:
    read = {*ALWAYS, *NAMES, *FACTORY, *RUN_TIME_NAMES, *PLACES}
    assert read - NOT_THE_OWNERS <= set(JOB_NAMES)


def test_of_slots_everything_that_is_read_may_be_bad() -> None:
    assert {*PROJECTION, *MARKS} - KEYS <= set(MACHINE_NAMES)
