"""Where updraft only watches, a project is asked and nothing in it is changed, at looks neither."""

from tests.rigs.clouds.harness import request
from tests.rigs.clouds.osfront import Front
from tests.rigs.clouds.osharness import OpenStackHarness
from updraft.clouds.watched import WatchedDriver

CHANGING = r"^(PUT|DELETE|PATCH|POST) (?!.*/auth/tokens)"
SETTINGS = {"root_volume": "10GiB", "floating_network": "public", "port": {}}


def test_a_project_is_only_asked(front: Front) -> None:
    harness = OpenStackHarness(front)
    ours = harness.driver("conformance", **SETTINGS)
    (made,) = ours.launch(request(harness))
    harness.cloud.settled()
    watched = WatchedDriver(harness.driver("conformance", **SETTINGS))
    before = len(front.calls(CHANGING))
    assert [one.id for one in watched.machines()] == [made.id]
    watched.look_up([made.id])
    watched.offers()
    watched.quota()
    assert len(front.calls(CHANGING)) == before
    ours.machines()
    assert len(front.calls(CHANGING)) > before, (
        "one that acts gives addresses, and labels volumes, at its looks"
    )
