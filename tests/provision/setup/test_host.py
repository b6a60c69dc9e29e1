"""What this machine's kernel says of its processes, whose names anybody may choose."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from updraft.provision.setup.host import Host

COMM = Path("/proc/self/comm")
MASTER = b"condor_master"
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's masters count")


@pytest.fixture
def named() -> Iterator[None]:
    """This process has its own name again afterwards."""
    before = COMM.read_bytes()
    yield
    COMM.write_bytes(before)


@root
@pytest.mark.parametrize("name", [b"\xff\xfe", b"a) S 1 (", b"a\nUid:\t0\t0", b"condor_master\n", b")", b" "])
def test_a_process_of_whatever_name_is_no_master_and_ends_nothing(named: None, name: bytes) -> None:
    COMM.write_bytes(name)
    assert os.getpid() not in Host().masters()
    assert name[:15].decode(errors="replace") in Host().family_of(os.getpid())


@root
def test_roots_own_master_is_found(named: None) -> None:
    COMM.write_bytes(MASTER)
    assert os.getpid() in Host().masters()


@root
def test_a_users_is_no_master_whatever_it_is_called(named: None) -> None:
    told, tell = os.pipe()
    wait, go_on = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.close(go_on)
        COMM.write_bytes(MASTER)
        os.setuid(65534)
        os.write(tell, b"+")
        os.read(wait, 1)
        os._exit(0)
    try:
        os.close(tell)
        assert os.read(told, 1) == b"+"
        assert child not in Host().masters()
    finally:
        os.close(go_on)
        os.waitpid(child, 0)
