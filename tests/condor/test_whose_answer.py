"""A drain counts only where the very startd has answered that the slot's ad gave the address of."""

from dataclasses import replace

import pytest

from tests.condor.test_reading import recorded
from updraft.condor.access import PoolAccess
from updraft.condor.collector.views import slot
from updraft.condor.pool import HTCondorPool, same_startd
from updraft.condor.process.tools import check_answered, is_at
from updraft.core.model import DrainMode
from updraft.errors import PoolError

OWN = "<10.9.0.10:9618?addrs=10.9.0.10-9618+[fd00--7]-9618&alias=w10&noUDP&sock=startd_34_e64f>"
THIEF = "<10.9.0.11:9618?addrs=10.9.0.11-9618&alias=w10&noUDP&sock=startd_34_e64f>"
BEHIND = "<192.168.0.5:9618?CCBID=1.2.3.4:9619%3faddrs%3d1.2.3.4-9619#7&PrivNet=a&sock=s>"
ACCEPTED = "Sent request to drain the startd {} with slot1@w10. This only affects the single startd;"
REFUSED = (
    "Attempt to send DRAIN_JOBS to startd {} failed\n"
    "Received failure from slot1@w10 in response to DRAIN_JOBS request: error code 10001: Draining already."
)


@pytest.mark.parametrize(
    ("told", "advertised", "same"),
    [
        (OWN, OWN, True),
        ("<10.9.0.10:9618>", OWN, True),
        ("<[fd00::7]:9618?sock=startd_34_e64f>", OWN, True),
        (THIEF, OWN, False),
        ("<10.9.0.10:9619>", OWN, False),
        ("<10.9.0.1:9618>", OWN, False),
        ("<0.9.0.10:9618>", OWN, False),
        ("", OWN, False),
        (OWN, "", False),
        (BEHIND, BEHIND, True),
        (BEHIND.replace("#7", "#8"), BEHIND, False),
        ("<192.168.0.5:9618>", BEHIND, True),
    ],
)
def test_which_daemon_is_at_an_address(told: str, advertised: str, same: bool) -> None:
    assert is_at(told, advertised) is same


NOBODY = "ERROR: Can't find address for startd nosuch"


@pytest.mark.parametrize(("said", "code"), [(ACCEPTED, 0), (REFUSED, 1)])
def test_only_the_startds_own_answer_counts(said: str, code: int) -> None:
    check_answered(said.format(OWN), OWN, code)
    with pytest.raises(PoolError, match=r"another startd goes by this name, at <10\.9\.0\.11"):
        check_answered(said.format(THIEF), OWN, code)
    with pytest.raises(PoolError, match="which startd has answered"):
        check_answered(said.replace("{}", "somewhere"), OWN, code)


def test_where_nobody_has_answered_the_tools_own_words_count() -> None:
    check_answered(NOBODY, OWN, 1)
    with pytest.raises(PoolError, match="which startd has answered"):
        check_answered(NOBODY, OWN, 0)


def test_of_two_startds_of_one_name_none_is_believed() -> None:
    own = slot(recorded("slot-busy.ad", UpdraftPool="test", MyAddress=OWN), "test")
    thief = replace(own, address=THIEF, draining=True, drain_reason="updraft: idle")
    assert same_startd(own, [own]) == own
    assert same_startd(own, []) is None
    for seen in ([thief], [own, thief], [thief, own]):
        with pytest.raises(PoolError, match="another startd goes by the name"):
            same_startd(own, seen)


def test_a_machine_that_is_said_to_be_in_two_places_is_not_drained() -> None:
    own = slot(recorded("slot-busy.ad", UpdraftPool="test", UpdraftInstance="i-1", MyAddress=OWN), "test")
    with HTCondorPool(PoolAccess("test", collector="127.0.0.1")) as pool:
        for slots in ([own, replace(own, name="slot1@w11", address=THIEF)], [replace(own, address="")]):
            with pytest.raises(PoolError, match="is said to be at"):
                pool.drain(slots, DrainMode.EMPTY, "idle", 1)
            with pytest.raises(PoolError, match="is said to be at"):
                pool.undrain(slots, 1)
