"""What drivers say of leases, through whatever they are wrapped in."""

import pytest

from updraft.clouds.base import Leases, leases_of
from updraft.clouds.local import driver as local
from updraft.clouds.openstack import from_settings as openstack
from updraft.clouds.prices import Priced


class Plain:
    """A driver that says nothing of leases."""

    name = "plain"


def test_a_driver_that_says_nothing_promises_nothing() -> None:
    assert leases_of(Plain()) == Leases()  # type: ignore[arg-type]
    assert leases_of(Priced(Plain(), {}, "c")) == Leases()  # type: ignore[arg-type]


def test_the_local_cloud_tells_and_ends() -> None:
    made = local.LocalDriver("here", "pool", None)  # type: ignore[arg-type]
    assert leases_of(Priced(made, {}, "here")) == Leases(told=True, ended=True)


@pytest.mark.parametrize(("drive", "told"), [(None, True), (False, True), (True, False)])
def test_openstack_tells_unless_metadata_are_on_a_drive(
    drive: bool | None, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "URL": "http://127.0.0.1:1",
        "USERNAME": "u",
        "PASSWORD": "p",
        "PROJECT_NAME": "p",
    }.items():
        monkeypatch.setenv(f"OS_AUTH_{name}" if name == "URL" else f"OS_{name}", value)
    settings = {} if drive is None else {"config_drive": drive}
    assert leases_of(openstack("os", "pool", settings)) == Leases(told=told, ended=False)
