"""One controller over two projects whose quotas are unequal, each used to its last machine."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.rigs.clouds import osprojects
from tests.rigs.clouds.realcloud import GIVEN
from tests.rigs.clouds.realcloud import Project as First

pytestmark = pytest.mark.openstack

SMALL, LARGE, BEYOND = 4, 12, 3


@pytest.fixture
def projects(project: First, monkeypatch: pytest.MonkeyPatch) -> list[osprojects.Project]:
    """The one that OS_CLOUD names, as it was before a front was put before it, and the second one."""
    second = os.environ.get("UPDRAFT_TEST_OS_SECOND", "")
    if not second or not os.environ.get("UPDRAFT_TEST_OS_ADMIN"):
        pytest.skip("it takes UPDRAFT_TEST_OS_SECOND, and UPDRAFT_TEST_OS_ADMIN to set both quotas")
    project.settle()
    if GIVEN["OS_CLIENT_CONFIG_FILE"]:
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", GIVEN["OS_CLIENT_CONFIG_FILE"])
    else:
        monkeypatch.delenv("OS_CLIENT_CONFIG_FILE")
    settings = osprojects.settings_given()
    return [
        osprojects.Project(GIVEN["OS_CLOUD"], SMALL, settings),
        osprojects.Project(second, LARGE, settings),
    ]


def test_two_quotas_are_used_to_the_last_machine(projects: list[osprojects.Project], tmp_path: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(osprojects.quotas(os.environ["UPDRAFT_TEST_OS_ADMIN"], projects))
        trial = osprojects.Trial(projects, tmp_path, stack)
        seen = osprojects.up_and_down(trial, SMALL + LARGE + BEYOND, 300.0)
    first, second = projects
    assert seen["machines"] == {first.name: SMALL, second.name: LARGE}
    assert seen["create_calls"] <= 4, "the first of an image, and the rest, in each project"
    assert not [call for call in seen["failed_calls"] if call.startswith("POST")], seen["failed_calls"]
    assert seen["repeated_failures"] == 0, seen["failed_calls"]
    assert sum(count for _, count, _ in seen["asked_for"]) == SMALL + LARGE
