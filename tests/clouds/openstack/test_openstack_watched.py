"""Where updraft only watches, a project is asked and nothing in it is changed, at looks neither."""

from tests.rigs.clouds.harness import request
from tests.rigs.clouds.osfront import Front
from tests.rigs.clouds.osharness import OpenStackHarness
from updraft.clouds.watched import watched

CHANGING = r"^(PUT|DELETE|PATCH|POST) (?!.*/auth/tokens)"
SETTINGS = {"root_volume": "10GiB", "floating_network": "public", "port": {}}


def test_a_project_is_only_asked(front: Front) -> None:
    harness = OpenStackHarness(front)
    ours = harness.driver("conformance", **SETTINGS)
    (made,) = ours.launch(request(harness))
    harness.cloud.settled()
    seen = watched(harness.driver("conformance", **SETTINGS).cloud).machines
    before = len(front.calls(CHANGING))
    assert [one.id for one in seen.machines()] == [made.id]
    seen.look_up([made.id])
    seen.offers()
    seen.quota()
    assert len(front.calls(CHANGING)) == before
    ours.machines()
    assert len(front.calls(CHANGING)) > before, (
        "one that acts gives addresses, and labels volumes, at its looks"
    )
