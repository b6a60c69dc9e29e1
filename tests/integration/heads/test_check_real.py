"""`updraft check` on a real pool: all is ok, and what is broken is found in its line; and `init` there."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.rigs.pools.realpool import RealPools, patience, until
from updraft.bootstrap.head.userdata import SIGNING_KEY
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

KEY = f"/etc/condor/passwords.d/{SIGNING_KEY}"
TOML = "/etc/updraft/updraft.toml"


@pytest.fixture(scope="module")
def pool(module_pool: RealPools) -> RealPool:
    """In order when a test begins: `broken` leaves it so."""
    made = module_pool(Wishes())
    until(lambda: not amiss(made), 30, "a pool in order")
    return made


def looked(pool: RealPool) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code of a check on the head, and state and text of each thing."""
    done = pool.updraft("check", "--json")
    rows = json.loads(done.stdout)["findings"]
    return done.returncode, {row["what"]: (row["state"], row["text"]) for row in rows}


def amiss(pool: RealPool) -> dict[str, str]:
    """What isn't ok on the head, and how it stands."""
    return {what: text for what, (state, text) in looked(pool)[1].items() if state != "ok"}


def sh(pool: RealPool, script: str) -> str:
    done = pool.on_head("sh", "-ec", script)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def broken(pool: RealPool, breaks: str, mends: str) -> Iterator[None]:
    """Broken meanwhile; afterwards all is ok again."""
    sh(pool, breaks)
    try:
        yield
    finally:
        sh(pool, mends)
        # A look is a second of a processor's time: rarely is soon enough.
        until(lambda: not amiss(pool), 30, "a pool in order again", every=2.0)


def test_all_is_ok_within_ten_seconds(pool: RealPool) -> None:
    begun = time.monotonic()
    code, rows = looked(pool)
    assert time.monotonic() - begun < 10 * patience()
    assert code == 0
    assert {state for state, _ in rows.values()} == {"ok"}
    assert "worker-check@" in rows["workers' tokens"][1]
    leftover = sh(
        pool, "ls -d /tmp/updraft-probe-* /tmp/updraft-pool-* 2>/dev/null | wc -l; pgrep -f updraft"
    )
    assert int(leftover.split()[0]) <= 1, "only the daemon's own folder stays"


def test_a_schedd_that_is_stopped(pool: RealPool) -> None:
    with broken(pool, "condor_off -daemon schedd", "condor_on -daemon schedd"):

        def gone() -> tuple[int, dict[str, tuple[str, str]]] | None:
            code, rows = looked(pool)
            return (code, rows) if rows.get("schedds", ("ok", ""))[0] != "ok" else None

        code, rows = until(gone, 20, "no schedd any more") or (0, {})
        assert code == 1
        assert any("its jobs are frozen" in text for state, text in rows.values() if state != "ok")


def test_a_schedd_that_hangs(pool: RealPool) -> None:
    with broken(pool, "pkill -STOP -x condor_schedd", "pkill -CONT -x condor_schedd"):
        begun = time.monotonic()
        found = amiss(pool)
        assert time.monotonic() - begun < 12 * patience()
        assert any(what.startswith("schedd") for what in found)
        told = [found]

        def named() -> list[str]:
            """On a busy machine all that is asked of schedds may be too late; then it is asked again."""
            now = told.pop() if told else amiss(pool)
            return [text for what, text in now.items() if what.startswith("schedd ")]

        (text,) = until(named, 30, "the schedd that hangs is named")
        assert "answer" in text


def test_a_signing_key_that_is_gone_and_an_image_that_the_cloud_has_not(pool: RealPool) -> None:
    breaks = f"""mv {KEY} /root/key; cp {TOML} /root/toml; sed -i 's/^image = .*/image = "nothing"/' {TOML}"""
    with broken(pool, breaks, f"mv /root/key {KEY}; cp /root/toml {TOML}"):
        found = amiss(pool)
        assert SIGNING_KEY in found["workers' tokens"]
        assert 'no image "nothing"' in found["image of class worker"]
        listed = pool.show("images")["images"]
        assert [one["name"] for one in listed] == [pool.image.name]


def test_a_collector_that_is_silent(pool: RealPool) -> None:
    with broken(pool, "pkill -STOP -x condor_collecto", "pkill -CONT -x condor_collecto"):
        begun = time.monotonic()
        found = amiss(pool)
        assert time.monotonic() - begun < 12 * patience()
        assert "doesn't answer" in found["collector"]


def test_the_lines_for_an_existing_pool_make_it_ready_and_can_be_undone(pool: RealPool) -> None:
    """A head without what updraft put there is a pool like any other: the printed lines are all it takes."""
    bare = f"mv {KEY} /root/key; cp /etc/condor/config.d/90-updraft.conf /root/conf; "
    bare += "sed -i /ALLOW_ADVERTISE/d /etc/condor/config.d/90-updraft.conf; "
    # The file's own name is that of the lines' file: another site's configuration has another.
    bare += "mv /etc/condor/config.d/90-updraft.conf /etc/condor/config.d/50-site.conf; condor_reconfig"
    back = f"rm -f /etc/condor/config.d/50-site.conf; mv /root/key {KEY}; "
    back += "mv /root/conf /etc/condor/config.d/90-updraft.conf; condor_reconfig"
    with broken(pool, bare, back):
        assert "workers' tokens" in amiss(pool)
        lines = pool.updraft("init", "--pool-lines")
        assert lines.returncode == 0, lines.stderr
        done = pool.on_head("sh", "-es", stdin=lines.stdout)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().splitlines()[-1].count(".") == 2, "the token that was made to try the key"
        until(lambda: not amiss(pool), 20, "a pool that lets workers in")
        undo = [line.removeprefix("# ") for line in lines.stdout.splitlines() if line.startswith("# rm ")]
        sh(pool, undo[0])
        until(lambda: "workers' tokens" in amiss(pool), 20, "a pool as it was")


def test_init_on_a_head_takes_what_htcondor_says(pool: RealPool) -> None:
    done = pool.updraft(
        "--config", "/root/new.toml", "init", "--driver", "local", "--endpoint", pool.cloud.config.endpoint,
        "--image", pool.image.name, "--pool-name", "new",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 'job_lease = "5m"' in sh(pool, "cat /root/new.toml")
    assert pool.updraft("--config", "/root/new.toml", "config", "check").returncode == 0


def test_a_collector_that_tells_everybody_its_ads(pool: RealPool) -> None:
    """As HTCondor's own defaults have it. The last of this file: what a schedd says when a collector has just
    read its configuration may be lost, and one that is stopped then stays in the collector.
    """
    conf, what = "/etc/condor/config.d/97-open.conf", "reading without a token"
    opens = f"printf 'SEC_READ_AUTHENTICATION = OPTIONAL\\nDENY_READ =\\n' >{conf}; condor_reconfig"
    with broken(pool, opens, f"rm {conf}; condor_reconfig"):
        said = until(lambda: amiss(pool).get(what), 20, "it is warned of", every=2.0)
        assert "answers whoever reaches it (unauthenticated@unmapped)" in said
    assert looked(pool)[1][what][0] == "ok"
