"""Who shows a real head something that it has no name for: he is a stranger, as who shows nothing is."""

from collections.abc import Callable

import pytest

from tests.rigs.pools.controlling import sh
from tests.rigs.pools.realpool import until
from updraft.demo.pool import USER, RealPool, Wishes

pytestmark = pytest.mark.long

Pools = Callable[..., RealPool]
SUITES = ("forky", pytest.param("trixie", marks=pytest.mark.extended))
FOLDER = "/etc/condor/authority"
# An authority that the head trusts, as it does those of its distribution, and a certificate for anybody.
AUTHORITY = f"""
mkdir {FOLDER}; cd {FOLDER}
quiet() {{ "$@" 2>/dev/null; }}
quiet openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=authority -days 2
for who in head anybody; do
    quiet openssl req -newkey rsa:2048 -nodes -keyout $who.key -out $who.csr -subj /CN=$who
    quiet openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $who.pem -days 2
done
chown {USER} anybody.key
condor_reconfig
"""
HAS_ONE = {
    "AUTH_SSL_SERVER_CERTFILE": f"{FOLDER}/head.pem",
    "AUTH_SSL_SERVER_KEYFILE": f"{FOLDER}/head.key",
    "AUTH_SSL_SERVER_CAFILE": f"{FOLDER}/ca.pem",
}
SHOWS_NOTHING = f"""
export _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS=SSL _CONDOR_SEC_CLIENT_AUTHENTICATION=REQUIRED
export _CONDOR_SSL_SKIP_HOST_CHECK=true _CONDOR_AUTH_SSL_CLIENT_CAFILE={FOLDER}/ca.pem
"""
SHOWS_A_CERTIFICATE = f"""{SHOWS_NOTHING}
export _CONDOR_AUTH_SSL_CLIENT_CERTFILE={FOLDER}/anybody.pem
export _CONDOR_AUTH_SSL_CLIENT_KEYFILE={FOLDER}/anybody.key
"""
LOOKS = """
condor_q -allusers -af Environment
condor_status -any -af Name
condor_ping -type SCHEDD -table READ WRITE
condor_ping -type COLLECTOR -table READ WRITE
condor_ping -type NEGOTIATOR -table READ WRITE
"""
WAITING = """\
executable = /bin/true
environment = "SECRET=opensesame"
requirements = false
queue
"""


@pytest.mark.parametrize("suite", SUITES)
def test_who_connects_with_or_without_a_certificate_reads_nothing(real_pool: Pools, suite: str) -> None:
    pool = real_pool(Wishes(controller=False, head_settings=HAS_ONE), suite=suite)
    sh(pool, AUTHORITY)
    pool.submit(WAITING, user="bob")
    assert "opensesame" in sh(pool, "condor_q -allusers -af Environment"), (
        "who shows an account reads, as ever"
    )
    for name, shows in (("unauthenticated", SHOWS_NOTHING), ("ssl", SHOWS_A_CERTIFICATE)):
        done = pool.on_head("sh", "-c", f"{{ {shows}{LOOKS}}} 2>&1", user=USER)
        assert "opensesame" not in done.stdout, name
        assert " ALLOW " not in done.stdout, (name, done.stdout)
        for log in ("CollectorLog", "SchedLog"):
            refused = f"PERMISSION DENIED to {name}@unmapped"
            seen = lambda log=log, refused=refused: refused in sh(pool, f"cat /var/log/condor/{log}")  # noqa: E731
            until(seen, 10, f"{log}: {refused}")
