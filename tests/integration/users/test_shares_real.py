"""Twenty users with unequal demand and unequal priorities under a cap, on real parts.

Who is bought for is whom the negotiator serves.
Eight of them can use the machines of one class only, the others those of another: how many of each are bought
decides who gets what, and the real negotiator's priorities say what that should be (48 cores and 32; were all
equal, 36 and 44). Most shares are smaller than a machine.
"""

from collections import Counter
from typing import Any

from tests.rigs.fairness import fair
from tests.rigs.pools.controlling import JOB, kill_service, of_class, sh, sleepers, start_service
from tests.rigs.pools.realpool import say, settings, until
from updraft.demo.pool import RealPool, Wishes

CAP = 80
USERS = [f"u{n:02}" for n in range(20)]
FACTORS = dict(zip(USERS, [1000, 500, 1000, 2000, 1000] * 4, strict=True))
CLASS = dict(zip(USERS, ["other", "other", "worker", "worker", "worker"] * 4, strict=True))
WANTS = {name: 2 if n % 5 == 4 else 12 for n, name in enumerate(USERS)}
CYCLES = 3
TWO_CLASSES = """
[classes.other]
image = "{image}"
flavors = ["xlarge"]
slots = 8
idle_limit = "10m"
boot_deadline = "3m"
"""


def jobs_of(name: str) -> str:
    job = JOB.format(
        count=WANTS[name],
        seconds=900,
        cpus=1,
        user=name,
        requirements=f'TARGET.UpdraftClass == "{CLASS[name]}"',
    )
    return "hold = true\n" + job.replace("log = ", "# log = ")


def running(pool: RealPool) -> Counter[str]:
    """Cores of running jobs by user."""
    told = sh(pool, "condor_q -allusers -constraint 'JobStatus == 2' -af Owner RequestCpus")
    return Counter(line.split()[0] for line in told.splitlines())


def priorities(pool: RealPool) -> dict[str, float]:
    """The users' effective priorities, as the negotiator tells the collector."""
    told = sh(pool, "condor_status -any -constraint 'MyType == \"Accounting\"' -af Name Priority")
    rows = [line.split() for line in told.splitlines()]
    return {row[0].partition("@")[0]: float(row[1]) for row in rows if row[0].partition("@")[0] in FACTORS}


def test_twenty_users_get_what_the_negotiator_would_give_them(real_pool: Any) -> None:
    text = settings(
        # Machines that joined first wait for the last ones, idle.
        # Who gets a part of a partitionable slot gets the rest as well (CLAIM_PARTITIONABLE_LEFTOVERS).
        worker={"flavors": ["xlarge"], "boot_deadline": "3m", "slots": 8, "idle_limit": "10m"},
        limits={"machines": 12, "cores": CAP},
        more=TWO_CLASSES,
    )
    pool = real_pool(Wishes(settings=text))
    sh(pool, f"for user in {' '.join(FACTORS)}; do useradd -m $user; done")
    domain = sh(pool, "condor_config_val UID_DOMAIN").strip()
    for name, factor in FACTORS.items():
        sh(pool, f"condor_userprio -setfactor {name}@{domain} {factor}")
        # The negotiator tells the collector of users who have an idle job: one that nothing ever runs.
        pool.submit(sleepers(1, 1, requirements="false", user=name), user=name)
        pool.submit(jobs_of(name), user=name)
    told = {name: factor / 2 for name, factor in FACTORS.items()}
    until(lambda: priorities(pool) == told, 40, "the collector knows everybody's priority")
    # Were it to serve each machine as it joins, jobs that don't end would keep what the first ones gave them.
    # And a controller that saw some of them released would buy for those first.
    kill_service(pool)
    sh(pool, "pkill -STOP -x condor_negotiat; condor_release -all")
    start_service(pool)
    until(lambda: sum(slot["Cpus"] for slot in pool.slots()) >= CAP, 180, "all that may be has joined")
    sh(pool, "pkill -CONT -x condor_negotiat")
    until(lambda: running(pool).total() >= CAP, 150, "all cores are in use")

    share = {name: round(cores, 6) for name, cores in fair(CAP, WANTS, FACTORS).items()}
    assert set(share.values()) == {2.0, 4.0, 8.0}
    cycles = _cycles(pool)
    for more in range(1, CYCLES + 1):
        until(lambda more=more: _cycles(pool) >= cycles + more, 60, "the negotiator has gone round again")
        got = running(pool)
        say(f"cores and shares: { {name: (got[name], share[name]) for name in FACTORS} }")
        assert got == share
    assert [len(of_class(pool, name)) for name in ("other", "worker")] == [6, 4]


def _cycles(pool: RealPool) -> int:
    """How often the negotiator has gone round."""
    return int(sh(pool, "grep -c 'Finished Negotiation Cycle' /var/log/condor/NegotiatorLog || true"))
