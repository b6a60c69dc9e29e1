"""Twenty users with unequal demand and unequal priorities under a cap, on real parts.

Eight of them can use the machines of one class only, the others those of another: how many of each are bought
decides who gets what, and the real negotiator's priorities say what that should be (48 cores and 32; were all
equal, 36 and 44).
"""

import time
from collections import Counter
from typing import Any

from tests.rigs.fairness import fair
from tests.rigs.pools.controlling import JOB, kill_service, sh, sleepers, start_service
from tests.rigs.pools.realpool import say, settings, until
from updraft.demo.pool import RealPool, Wishes

CAP = 80
USERS = [f"u{n:02}" for n in range(20)]
FACTORS = dict(zip(USERS, [1000, 500, 1000, 2000, 1000] * 4, strict=True))
WANTS = {name: 2 if n % 5 == 4 else 12 for n, name in enumerate(USERS)}
LOOKS = 5
TWO_CLASSES = """
[classes.other]
image = "{image}"
flavors = ["xlarge"]
slots = 8
idle_limit = "6s"
boot_deadline = "3m"
lifetime = "12h"
head_gone_after = "5m"
"""


def jobs_of(name: str) -> str:
    mark = "other" if USERS.index(name) % 5 < 2 else "worker"
    job = JOB.format(
        count=WANTS[name],
        seconds=900,
        cpus=1,
        user=name,
        requirements=f'TARGET.UpdraftClass == "{mark}"',
    )
    return "hold = true\n" + job.replace("log = ", "# log = ")


def running(pool: RealPool) -> Counter[str]:
    """Cores of running jobs by user."""
    told = sh(pool, "condor_q -allusers -constraint 'JobStatus == 2' -af Owner RequestCpus")
    return Counter(dict.fromkeys(USERS, 0)) + Counter(line.split()[0] for line in told.splitlines())


def priorities(pool: RealPool) -> dict[str, float]:
    """The users' effective priorities, as the negotiator tells the collector."""
    told = sh(pool, "condor_status -any -constraint 'MyType == \"Accounting\"' -af Name Priority")
    rows = [line.split() for line in told.splitlines()]
    return {row[0].partition("@")[0]: float(row[1]) for row in rows if row[0].partition("@")[0] in USERS}


def test_twenty_users_get_what_the_negotiator_would_give_them(real_pool: Any) -> None:
    text = settings(
        # Who gets a part of a partitionable slot gets the rest as well (CLAIM_PARTITIONABLE_LEFTOVERS).
        worker={"flavors": ["xlarge"], "boot_deadline": "3m", "slots": 8},
        limits={"machines": 12, "cores": CAP},
        more=TWO_CLASSES,
    )
    pool = real_pool(Wishes(settings=text))
    sh(pool, f"for user in {' '.join(USERS)}; do useradd -m $user; done")
    domain = sh(pool, "condor_config_val UID_DOMAIN").strip()
    for name, factor in FACTORS.items():
        sh(pool, f"condor_userprio -setfactor {name}@{domain} {factor}")
    for name in USERS:
        # The negotiator tells the collector of users who have an idle job: one that nothing ever runs.
        pool.submit(sleepers(1, 1, requirements="false", user=name), user=name)
        pool.submit(jobs_of(name), user=name)
    until(lambda: len(priorities(pool)) == len(USERS), 40, "the collector knows everybody's priority")
    # Were it to serve each machine as it joins, jobs that don't end would keep what the first ones gave them.
    # And a controller that saw some of them released would buy for those first.
    kill_service(pool)
    sh(pool, "kill -STOP $(pidof condor_negotiator); condor_release -all")
    start_service(pool)
    until(
        lambda: sum(slot["Cpus"] for slot in pool.slots()) >= CAP, 120, "all that may be has joined", every=1
    )
    sh(pool, "kill -CONT $(pidof condor_negotiator)")
    until(lambda: running(pool).total() >= CAP, 150, "all cores are in use", every=1)
    seen = []
    for _ in range(LOOKS):
        time.sleep(2)  # the negotiator has gone round at least once more
        seen.append(running(pool))
    share = fair(CAP, WANTS, priorities(pool))
    say(f"cores and shares: { {name: (seen[-1][name], round(share[name], 1)) for name in USERS} }")
    for name in USERS:
        got = sum(look[name] for look in seen) / LOOKS
        assert abs(got - share[name]) <= 0.1 * share[name], (name, sorted(seen[-1].items()), share)
    assert max(look.total() for look in seen) <= CAP
    machines = [one for one in pool.workers("pending", "running", "stopping") if one["tags"]]
    assert len(machines) * 8 <= CAP
