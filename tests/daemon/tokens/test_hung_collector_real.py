"""A collector that an ad keeps busy for good: before release 25 its master ends it; 25 gives the ad up."""

from dataclasses import replace

import pytest

from tests.rigs.pools.livepool import LivePool, live_pool, wait_for
from tests.waiting import deadline
from updraft.bootstrap.condor_config import lines
from updraft.bootstrap.head.identities import identity_rule
from updraft.bootstrap.head.userdata import HUNG, worker_rights
from updraft.condor.pool import HTCondorPool

pytestmark = [pytest.mark.integration, pytest.mark.long]

DOMAIN = "pool.test"
RIGHTS = {name: f"$(ALLOW_DAEMON) {who}" for name, who in worker_rights(DOMAIN).items()}
SOON = dict.fromkeys(HUNG, 10)  # seconds, and up to a minute until the master looks
ASKS = 'MyType = "DaemonMaster"\nName = "updraft-handover/0a"\nMyAddress = "<10.9.9.9:1>"\n'
LADDER = 'A0 = ""\n' + "".join(f"A{n} = strcat({', '.join([f'A{n - 1}'] * 30)})\n" for n in range(1, 10))


def of_a_boot_token(live: LivePool, ad: str) -> None:
    """Send this ad with a boot token and nothing else; nobody waits for an answer."""
    access = replace(live.access(), worker_identity="worker-{launch}", own_tokens=True, signing_key="POOL")
    with live.network(), HTCondorPool(access) as pool:
        token = pool.mint_boot_token("l1", 900.0, 900.0)
    script = (
        f"d=$(mktemp -d); umask 077; echo '{token}' >$d/t; "
        "export _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=TOKEN "
        "_CONDOR_SEC_TOKEN_SYSTEM_DIRECTORY=$d _CONDOR_SEC_TOKEN_DIRECTORY=$d; "
        "timeout 5 condor_advertise UPDATE_MASTER_AD -"
    )
    live.nodes["head"].run("sh", "-c", script, text=ad, check=False)


def answers(live: LivePool) -> bool:
    said = live.nodes["head"].run("timeout", "5", "condor_status", "-collector", "-af", "Name", check=False)
    return "My Pool" in said


def collector(live: LivePool) -> str:
    return live.nodes["head"].run("sh", "-c", "pgrep -o condor_collect || :").strip()


@pytest.mark.parametrize("suite", ["", "trixie"])
def test_a_collector_that_an_ad_keeps_busy_is_ended_and_is_there_again(suite: str) -> None:
    with live_pool(lines({**RIGHTS, **identity_rule(DOMAIN), **SOON}), suite=suite) as live:
        of_a_boot_token(live, ASKS)
        assert "updraft-handover/0a" in live.status("-master", "-af", "Name"), "it may send its own"
        first = collector(live)
        of_a_boot_token(live, ASKS + LADDER + "MasterIpAddr = A9\n")
        if not suite:
            assert answers(live)
            assert collector(live) == first
            return
        # Of two callers it hears whom it likes first. A release that asks the rule before were good news.
        wait_for("no answer", lambda: not answers(live), deadline(60))
        wait_for("another collector", lambda: collector(live) not in ("", first), deadline(120))
        wait_for("its answer", lambda: answers(live), deadline(60))
