"""What a fake cloud counts as it goes is what one counts who goes through all its machines at that moment."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from updraft.clouds.base import TAG_POOL, LaunchRequest
from updraft.clouds.fake import FakeCloud, FakeInstance, Site, site_settings
from updraft.core.model import CloudState
from updraft.errors import NoCapacity

LATE = ("0s", "20s")
BOOT = {"start": "10s", "join": "10s", "breaks": 0.2, "dies": 0.3, "dies_after": "100s"}
QUIET = {"start": "10s", "join": "10s"}
steps = st.one_of(
    st.tuples(st.just("launch"), st.integers(1, 3), st.sampled_from(("small", "large"))),
    st.tuples(st.sampled_from(("terminate", "kill", "power_off", "untag")), st.integers(0, 9)),
    st.tuples(st.just("pass"), st.sampled_from((0.0, 1.0, 5.0, 10.0, 20.0, 60.0, 100.0, -15.0, -70.0))),
    st.tuples(st.just("change"), st.sampled_from(LATE), st.sampled_from(LATE)),
    st.tuples(st.just("ask")),
)


class Story:
    """A cloud to which this happens, and what it should say."""

    def __init__(self, shows_after: str, hides_after: str) -> None:
        self.now = self.latest = 1e9
        about: dict[str, Any] = {"boots": [BOOT], "shows_after": shows_after, "hides_after": hides_after}
        self.site = Site("f", site_settings("f", about), lambda: self.now)
        self.cloud = FakeCloud(self.site, "p")

    def take(self, step: tuple[Any, ...]) -> None:
        """One step."""
        what, given = step[0], step[1:]
        there = list(self.site.instances)
        if what == "launch":
            key = f"k{len(there)}"
            self.cloud.launch(LaunchRequest(key, given[0], "img", given[1], "a", "on-demand", b""))
        elif what == "pass":
            self.now += given[0]
        elif what == "change":
            self.site.change(shows_after=given[0], hides_after=given[1])
        elif what == "untag" and there:
            self.cloud.tag([there[given[0] % len(there)]], {TAG_POOL: None})
        elif what in ("terminate", "kill", "power_off") and there:
            getattr(self.site, what)(there[given[0] % len(there)])
        elif what == "ask":
            self.cloud.machines()

    def shown(self, one: FakeInstance) -> CloudState | None:
        """How its listing shows it now."""
        about, now = self.site.settings, self.now
        if one.launched_at + about.shows_after > now:
            return None
        if one.end() + about.hides_after <= now:
            kept = one.end() + about.hides_after + about.keeps_terminated
            return CloudState.TERMINATED if kept > now else None
        late = about.hides_after if min(one.end(), one.stop_asked_at) <= now else 0.0
        return one.state(max(now - late, one.launched_at))

    def holds(self) -> None:
        """Fail where anything is not as it should be."""
        current, now = self.site.current(), self.now
        self.latest = max(self.latest, now)
        there = [one for one in current if one.occupies(now)]
        quota, paid = self.cloud.quota(), [one for one in current if one.pays(now)]
        assert quota.used_machines == len(there)
        assert quota.used_cores == sum(one.resources.cpus for one in there)
        assert self.site.paid.machines == len(paid)
        assert math.isclose(self.site.paid.cost, sum(one.sold.price or 0.0 for one in paid), abs_tol=1e-9)
        listed = {one.id: self.shown(one) for one in current if TAG_POOL in one.tags}
        assert {one.id: one.state for one in self.cloud.machines()} == {k: v for k, v in listed.items() if v}
        for one in self.site.instances.values():
            assert one in current or one.end() < self.latest, "it was forgotten before its end"


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(LATE), st.sampled_from(LATE), st.lists(steps, max_size=25))
def test_what_is_counted_is_what_is_there(
    shows_after: str, hides_after: str, happens: list[tuple[Any, ...]]
) -> None:
    story = Story(shows_after, hides_after)
    for step in happens:
        story.take(step)
        story.holds()


def test_a_listing_in_which_nothing_has_changed_is_the_same_one_and_another_where_it_has() -> None:
    story = Story("0s", "0s")
    story.site.change(boots=[QUIET])
    story.take(("launch", 2, "small"))
    first = story.cloud.machines()
    story.now += 5.0
    assert story.cloud.machines() is first
    story.now += 10.0
    running = story.cloud.machines()
    assert {one.state for one in running} == {CloudState.RUNNING}
    story.site.tag(running[0].id, {"updraft:retiring": "x"})
    tagged = story.cloud.machines()
    assert [one.retiring for one in tagged] == [True, False]
    assert tagged[1] is running[1], "only what changed is made anew"
    story.site.out_of_reach.add(running[0].id)
    assert len(story.cloud.machines()) == 1


def test_of_an_offer_with_an_end_there_is_so_much_and_what_is_left_is_told_where_the_cloud_tells() -> None:
    story = Story("0s", "0s")
    sold = next(one for one in story.site.offers if (one.zone, one.flavor) == ("a", "small"))
    site = Site("f", story.site.settings, lambda: story.now, offers=(replace(sold, left=2),))
    cloud = FakeCloud(site, "p")
    assert [one.left for one in cloud.offers()] == [None]
    site.change(tells_left=True)
    assert [one.left for one in cloud.offers()] == [2]
    assert len(cloud.launch(LaunchRequest("k", 3, "img", "small", "a", "on-demand", b""))) == 2
    assert [one.left for one in cloud.offers()] == [0]
    with pytest.raises(NoCapacity):
        cloud.launch(LaunchRequest("k2", 1, "img", "small", "a", "on-demand", b""))
