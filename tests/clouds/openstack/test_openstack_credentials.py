"""When credentials of OpenStack end: of what the token was asked for with, as Keystone tells of it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.rigs.clouds.osfront import Front, Trouble
from tests.rigs.clouds.osharness import OpenStackHarness, refused
from updraft.clouds.awaited import Awaited
from updraft.clouds.cloud import Cloud
from updraft.clouds.openstack.credentials import AGAIN, moment
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.clouds.openstack.errors import Garbled
from updraft.clouds.watched import watched

SOON = "2026-12-01T18:30:59.000000"
THEN = datetime(2026, 12, 1, 18, 30, 59, tzinfo=UTC).timestamp()
ASKED = r"^GET .*/application_credentials/"
WITH_A_NAME = """
clouds:
  test:
    region_name: RegionOne
    auth:
      auth_url: {url}/identity/v3
      username: somebody
      password: not-to-be-seen
      project_name: p
      user_domain_name: Default
      project_domain_name: Default
"""
WITH_THAT_ALONE = """
clouds:
  test:
    auth_type: v3token
    region_name: RegionOne
    auth:
      auth_url: {url}/identity/v3
      token: not-to-be-seen
      project_id: p
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, front: Front) -> Callable[[str], None]:
    def write(text: str) -> None:
        (tmp_path / "clouds.yaml").write_text(text.format(url=front.url))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))

    return write


def end(driver: OpenStackDriver) -> float | None:
    driver.quota()
    return known(driver.cloud)


def known(cloud: Cloud) -> float | None:
    return cloud.traits.credentials_end()


def test_an_application_credential_ends_when_its_owner_said(harness: OpenStackHarness) -> None:
    driver = harness.driver()
    assert known(driver.cloud) is None, "before anything was asked"
    harness.cloud.ends["application_credential"] = SOON
    harness.cloud.ends |= {"password": "2026-11-26T00:00:00.000000"}
    assert end(driver) == THEN


def test_one_without_an_end_has_none(harness: OpenStackHarness) -> None:
    assert end(harness.driver()) is None


def test_a_trust_ends_too(harness: OpenStackHarness, configured: Callable[[str], None]) -> None:
    configured(WITH_A_NAME)
    harness.cloud.ends |= {"trust": "2026-12-01T18:30:59.000000Z", "password": "2027-01-01T00:00:00.000000"}
    assert end(harness.driver()) == THEN


def test_a_password_ends_where_the_cloud_has_that(
    harness: OpenStackHarness, configured: Callable[[str], None]
) -> None:
    configured(WITH_A_NAME)
    harness.cloud.ends["password"] = SOON
    assert end(harness.driver()) == THEN
    harness.cloud.ends.clear()
    assert end(harness.driver()) is None


def test_a_token_in_the_file_ends_itself(
    harness: OpenStackHarness, configured: Callable[[str], None]
) -> None:
    configured(WITH_THAT_ALONE)
    assert end(harness.driver()) == datetime(2099, 1, 1, tzinfo=UTC).timestamp()


def test_it_is_asked_for_once_an_hour_and_follows_who_renews(harness: OpenStackHarness) -> None:
    driver = harness.driver()
    harness.cloud.ends["application_credential"] = SOON
    assert end(driver) == THEN
    harness.cloud.ends["application_credential"] = "2027-12-01T18:30:59.000000"
    harness.now += AGAIN - 1
    assert end(driver) == THEN
    harness.now += 1
    assert end(driver) == THEN + 365 * 86400


@pytest.mark.parametrize(
    "trouble",
    [refused(403, "You are not authorized"), refused(404, "Could not find"), refused(503, "Unavailable")],
    ids=["access rules", "an old Keystone", "down"],
)
def test_where_it_can_not_be_had_all_else_goes_on(harness: OpenStackHarness, trouble: object) -> None:
    driver = harness.driver()
    harness.cloud.ends["application_credential"] = SOON
    with harness.front.trouble(Trouble(ASKED, trouble)):  # type: ignore[arg-type]
        assert driver.quota().machines is not None
        assert known(driver.cloud) is None
    harness.now += AGAIN
    assert end(driver) == THEN
    harness.now += AGAIN
    with harness.front.trouble(Trouble(ASKED, trouble)):  # type: ignore[arg-type]
        assert end(driver) == THEN, "what was known stays"


def test_whoever_is_wrapped_around_a_driver_tells_it(harness: OpenStackHarness) -> None:
    driver = harness.driver()
    harness.cloud.ends["application_credential"] = SOON
    driver.quota()
    assert known(watched(driver.cloud)) == THEN
    awaited = Awaited("cloud", lambda: driver.cloud, lambda _error: None)
    assert known(awaited.cloud) is None, "it isn't made yet"
    awaited.quota()
    assert known(awaited.cloud) == THEN


def test_what_is_no_time_is_an_odd_answer() -> None:
    assert moment(None) is None
    assert moment("2026-12-01T18:30:59Z") == moment(SOON) == THEN
    with pytest.raises(Garbled, match="no time"):
        moment("soon")
