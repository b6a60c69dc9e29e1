"""Asking a cloud at its own pace: how often, and how honestly the age of an answer is told."""

import pytest

from tests.clouds.fake.test_fake_conformance import FakeHarness
from tests.rigs.clouds.harness import request
from updraft.clouds.base import Aged, Pace, Remembering
from updraft.clouds.paced import Paced
from updraft.core.model import Known
from updraft.errors import CloudUnavailable, NoCapacity
from updraft.observe.sources import VIRTUAL, Asker


@pytest.fixture
def harness() -> FakeHarness:
    return FakeHarness()


@pytest.fixture
def paced(harness: FakeHarness) -> Paced:
    return Paced(harness.driver("conformance"), Pace(machines=10, page=2), clock=lambda: harness.now)


def calls(harness: FakeHarness, name: str) -> int:
    return sum(call.name == name for call in harness.site.calls)


def test_a_quiet_cloud_is_asked_at_its_pace(harness: FakeHarness, paced: Paced) -> None:
    assert isinstance(paced, Remembering)
    for _ in range(30):
        paced.machines()
        paced.quota()
        paced.offers()
        harness.now += 2
    assert calls(harness, "machines") == 6
    assert calls(harness, "quota") == 1
    assert calls(harness, "offers") == 1


def test_more_pages_are_asked_for_less_often(harness: FakeHarness, paced: Paced) -> None:
    paced.launch(request(harness, 5))
    harness.now += 60
    harness.site.calls.clear()
    for _ in range(30):
        assert len(paced.machines()) == 5
        harness.now += 2
    assert calls(harness, "machines") == 2, "three pages of two: every half a minute"


def test_a_slow_cloud_rests_twice_as_long_as_it_took(
    harness: FakeHarness, paced: Paced, monkeypatch: pytest.MonkeyPatch
) -> None:
    paced.launch(request(harness))
    asked, answer = [], paced._machines.machines

    def slow() -> object:
        asked.append(harness.now)
        harness.now += 5
        if len(asked) == 2:
            raise CloudUnavailable("timed out")
        return answer()

    monkeypatch.setattr(paced._machines, "machines", slow)
    begun = harness.now
    for _ in range(12):
        try:
            paced.machines()
        except CloudUnavailable:
            assert asked[1] == begun + 15
        harness.now += 2
    assert [at - begun for at in asked] == [0, 15, 30]
    paced.tag([], {})
    paced.machines()
    assert len(asked) == 4, "after a change it is asked at once"


def test_it_is_asked_each_time_while_anything_moves(harness: FakeHarness, paced: Paced) -> None:
    (made,) = paced.launch(request(harness))
    harness.site.calls.clear()
    for _ in range(3):
        paced.machines()
        harness.now += 0.5
    assert calls(harness, "machines") == 3
    harness.now += 60
    paced.machines()
    paced.terminate([made.id])
    harness.site.calls.clear()
    paced.machines()
    paced.machines()
    assert calls(harness, "machines") == 2


@pytest.mark.parametrize("what", ["launch", "terminate", "tag", "failed"])
def test_after_a_change_of_our_own_nothing_old_is_told(harness: FakeHarness, paced: Paced, what: str) -> None:
    (made,) = paced.launch(request(harness))
    harness.now += 60
    paced.machines()
    paced.quota()
    harness.site.calls.clear()
    if what == "launch":
        paced.launch(request(harness))
    elif what == "terminate":
        paced.terminate([made.id])
    elif what == "tag":
        paced.tag([made.id], {"x": "y"})
    else:
        with harness.failing(NoCapacity), pytest.raises(NoCapacity):
            paced.launch(request(harness))
    paced.machines()
    paced.quota()
    assert (calls(harness, "machines"), calls(harness, "quota")) == (1, 1)


def test_an_answer_asked_for_before_a_change_is_not_kept(harness: FakeHarness) -> None:
    driver = harness.driver("conformance")
    paced = Paced(driver, Pace(), clock=lambda: harness.now)

    class Slow:
        name = "fake"
        first = True

        def machines(self) -> object:
            found = driver.machines()
            if self.first:  # a launch of our own happens while the listing is under way
                self.first = False
                paced.launch(request(harness))
            return found

        def __getattr__(self, name: str) -> object:
            return getattr(driver, name)

    paced._machines = Slow()  # type: ignore[assignment]
    assert paced.machines() == ()
    assert len(paced.machines()) == 1


def test_an_error_is_told_each_time_and_never_an_old_answer(harness: FakeHarness, paced: Paced) -> None:
    paced.machines()
    harness.now += 10
    with harness.failing(CloudUnavailable):
        for _ in range(2):
            with pytest.raises(CloudUnavailable):
                paced.machines()
    assert paced.machines() == ()


def test_an_old_answer_is_known_as_of_its_own_time(harness: FakeHarness, paced: Paced) -> None:
    asker: Asker[object] = Asker("the cloud", stale_after=20, asking=VIRTUAL)

    def look() -> Known[object]:
        asker.ask(paced.aged_machines, harness.now)
        known = asker.answer(1.0, harness.now)
        assert isinstance(known, Known)
        return known

    begun = harness.now
    assert look().at == pytest.approx(begun, abs=0.1)
    harness.now += 6
    assert look().at == pytest.approx(begun, abs=0.1)
    harness.now += 4
    assert look().at == pytest.approx(begun + 10, abs=0.1)
    assert paced.aged_machines() == Aged((), 0.0)
