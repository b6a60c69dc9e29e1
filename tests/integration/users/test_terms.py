"""Jobs that say what they want, on a real schedd and startds: what the transform and START make of them."""

from collections.abc import Iterator

import pytest

from tests.rigs.pools.livepool import COLLECTOR, TRUST_DOMAIN, LivePool, live_pool, wait_for
from tests.rigs.reading import worker
from updraft.bootstrap.head.transforms import schedd_config
from updraft.bootstrap.worker.userdata import START, worker_config
from updraft.condor.access import PoolAccess
from updraft.condor.pool import HTCondorPool
from updraft.core.model import Resources, Variant
from updraft.core.slots.terms import OWN_REQUIREMENTS

pytestmark = pytest.mark.integration

GIB = 1024 * 1024
TRUE = "executable = /bin/true\nrequest_disk = 1M\n"
QUICK = (
    "NEGOTIATOR_INTERVAL = 2\nNEGOTIATOR_MIN_INTERVAL = 1\nNEGOTIATOR_CYCLE_DELAY = 1\nSCHEDD_INTERVAL = 2\n"
)


def config(start: str = "", **changes: object) -> str:
    """What a worker of ours says of itself, and its START behind a site's own."""
    made = worker(cloud="c1", sold=Resources(1, 1024, 20 * GIB), price=0.1, worker_class="wn", **changes)
    said = [
        line
        for line in worker_config(made).replace("\\\n", "").splitlines()
        if line.startswith(("Updraft", "VMType", "STARTD_ATTRS"))
    ]
    return "\n".join([start, *said, START])


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    with live_pool(QUICK + schedd_config()) as pool, pool.network():
        pool.worker("plain", 11, config('START = TARGET.Owner =!= "bob"'))
        pool.worker("made", 12, config(image="al", variant=Variant(image="al", user="alice")))
        yield pool


def runs_on(live: LivePool, more: str, user: str = "alice") -> str:
    """Where the job has run; "" where it waits after all the others of its kind have had their turn."""
    job = live.submit(f"{TRUE}{more}\nqueue\n", user)
    head = live.nodes["head"]

    def ended() -> str:
        return head.run("condor_history", job, "-limit", "1", "-af", "LastRemoteHost").strip()

    def refused() -> bool:
        return "undefined" not in head.run("condor_q", job, "-af", "LastRejMatchTime")

    wait_for(f"job {job}", lambda: ended() or refused(), 60)
    found = ended()
    if not found:
        head.run("condor_rm", job)
    return found.partition("@")[2].partition(".")[0]


def test_a_submit_file_of_cloud_schedulers_runs_unchanged_where_it_asked_to(live: LivePool) -> None:
    theirs = (
        'requirements = VMType =?= "wn"\n+VMAMI = "c1:forky,default:none"\n+VMInstanceType = "c1:m.2"\n'
        '+VMCPUCores = "1"\n+VMMem = "512"\n+VMStorage = "10"\n+TargetClouds = "c1"\n+VMKeepAlive = "5"\n'
        "+VMMaximumPrice = 10\n+VMJobPerCore = True\n"
    )
    assert runs_on(live, theirs) == "plain"


@pytest.mark.parametrize(
    ("terms", "user", "host"),
    [
        ("", "alice", "plain"),
        ('+UpdraftImage = "al"', "alice", "made"),
        ('+UpdraftImage = "al"', "bob", ""),  # a machine made for alice
        ("", "bob", ""),  # what the site's own START says still holds
        ('+UpdraftImage = "other"', "alice", ""),
        ("+UpdraftMaxPrice = 0.05", "alice", ""),
        ('+VMUserData = "http://127.0.0.1/x"', "alice", ""),
    ],
)
def test_machines_take_what_they_were_made_for(live: LivePool, terms: str, user: str, host: str) -> None:
    assert runs_on(live, terms, user) == host


def test_the_transform_gives_requirements_and_expands_nothing_of_the_jobs(live: LivePool) -> None:
    plain = live.submit(f"{TRUE}hold = true\nqueue\n")
    asking = live.submit(
        f'{TRUE}hold = true\n+UpdraftImage = "al"\n+UpdraftNetwork = "$$(x)"\n'
        'requirements = TARGET.Odd =!= strcat("$", "ENV(PATH)")\nqueue\n'
    )
    head = live.nodes["head"]
    assert "UpdraftTakesImage" not in head.run("condor_q", plain, "-af:r", "Requirements")
    assert "UpdraftTakesImage" in head.run("condor_q", asking, "-af:r", "Requirements")
    assert "TARGET.Odd" in head.run("condor_q", asking, "-af:r", OWN_REQUIREMENTS)
    assert "TARGET.UpdraftTakesImage" in head.run("condor_q", "-better-analyze", asking, check=False)


def test_the_look_reads_the_terms_and_what_the_jobs_own_requirements_refer_to(live: LivePool) -> None:
    live.submit(
        f'{TRUE}+UpdraftImage = "nowhere"\n+Special = 5\nrequest_memory = 77\n'
        'requirements = MY.Special < TARGET.Cpus + 9 && VMType == "wn"\nqueue 2\n'
    )
    access = PoolAccess("demo", collector=COLLECTOR, token_dir=live.token_dir(), trust_domain=TRUST_DOMAIN)
    with HTCondorPool(access) as pool:
        groups = pool.demand("head.pool.test", running=False, deadline=20).groups
    (seen,) = [group for group in groups if group.request.memory == 77]
    assert seen.terms.images == {"": "nowhere"}
    assert seen.terms.label == "wn"
    assert seen.evaluable
    assert "Special = 5" in seen.ad
