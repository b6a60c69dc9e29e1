"""What every driver must do, whatever cloud is behind it.

A driver's test module makes a class of its own and says how to reach its cloud::

    class TestMyDriver(MachinesConformance):
        @pytest.fixture
        def harness(self): ...

The harness is what a test needs beyond the driver: the cloud's own eyes and hands. Whatever a cloud can't
show or do is answered with None or False, and the test that needs it is skipped, by name.
"""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.rigs.clouds.harness import Harness, request
from updraft.clouds.base import (
    TAG_GENERATION,
    TAG_IDENTITY,
    TAG_LAUNCH,
    TAG_POOL,
    TAG_RETIRING,
    TAG_VARIANT,
    Machines,
)
from updraft.core.model import CloudState, Instance, Variant
from updraft.errors import (
    AuthFailed,
    BadRequest,
    CloudError,
    CloudUnavailable,
    NoCapacity,
    QuotaExceeded,
    Throttled,
)

GONE = (CloudState.TERMINATED, CloudState.STOPPING)


def ids(instances: Iterable[Instance]) -> set[str]:
    return {instance.id for instance in instances}


def standing(driver: Machines) -> set[str]:
    """The machines that are there and aren't about to end."""
    return {one.id for one in driver.machines() if one.state not in GONE}


class MachinesConformance:
    """The suite. Each test stands for one sentence of the contract in `updraft/clouds/base.py`."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("a driver's test class brings its harness")

    @pytest.fixture
    def driver(self, harness: Harness) -> Machines:
        return harness.made("conformance").machines

    # ------------------------------------------------------------------------------------------ launch

    def test_a_launch_of_three_makes_three(self, harness: Harness, driver: Machines) -> None:
        made = driver.launch(request(harness, 3))
        assert len(ids(made)) == 3
        harness.wait(lambda: standing(driver) == ids(made), "three machines listed")

    def test_a_launch_never_waits_for_the_boot(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        assert made.state is CloudState.PENDING

    def test_a_machine_comes_to_run(self, harness: Harness, driver: Machines) -> None:
        if not harness.boots:
            pytest.skip("nothing boots on this cloud")
        (made,) = driver.launch(request(harness))
        harness.wait(
            lambda: any(one.id == made.id and one.state is CloudState.RUNNING for one in driver.machines()),
            "the machine runs",
        )

    def test_the_same_key_twice_makes_no_more_machines(self, harness: Harness, driver: Machines) -> None:
        once = request(harness, 2)
        first, second = driver.launch(once), driver.launch(once)
        assert ids(second) == ids(first)
        harness.wait(lambda: len(standing(driver)) == 2, "two machines listed, and no more")

    def test_the_same_key_from_another_process_makes_no_more_machines(self, harness: Harness) -> None:
        once = request(harness, 2)
        first = harness.made("conformance").machines.launch(once)
        second = harness.made("conformance").machines.launch(once)
        assert ids(second) == ids(first)

    def test_other_keys_make_other_machines(self, harness: Harness, driver: Machines) -> None:
        first, second = driver.launch(request(harness)), driver.launch(request(harness))
        assert not ids(first) & ids(second)

    def test_a_launch_without_an_answer_is_settled_by_its_tags(
        self, harness: Harness, driver: Machines
    ) -> None:
        mute, asked = harness.mute_after_launch(), request(harness, 2)
        if mute is None:
            pytest.skip("this cloud can't be made to lose an answer")
        with mute, pytest.raises(CloudUnavailable):
            driver.launch(asked)
        harness.wait(
            lambda: sum(one.launch_key == asked.key for one in driver.machines()) == 2,
            "both machines are found by their launch key",
        )
        assert len(driver.launch(asked)) == 2
        assert len(standing(driver)) == 2

    def test_user_data_arrives_byte_for_byte(self, harness: Harness, driver: Machines) -> None:
        raw = b"\x1f\x8b\x00\xff #cloud-config\r\n\xc3\xa4\x00"
        (made,) = driver.launch(request(harness, user_data=raw))
        seen = harness.user_data(made.id)
        if seen is None:
            pytest.skip("this harness can't see user-data")
        assert seen == raw

    # ----------------------------------------------------------------------------------------- listing

    def test_an_instance_says_what_it_is(self, harness: Harness, driver: Machines) -> None:
        asked = request(harness)
        (made,) = driver.launch(asked)
        harness.wait(lambda: made.id in standing(driver), "the machine is listed")
        (seen,) = (one for one in driver.machines() if one.id == made.id)
        for one in (made, seen):
            assert one.cloud == driver.name
            assert one.worker_class == "small"
            assert one.launch_key == asked.key
            assert one.generation == "g1"
            assert not one.retiring
            assert (one.zone, one.flavor) == (harness.zone, harness.flavor)
            assert (one.image, one.market) == (harness.image, harness.market)
        assert seen.launched_at == pytest.approx(made.launched_at, abs=2)

    def test_a_variant_is_kept_as_it_was_written(self, harness: Harness, driver: Machines) -> None:
        text = Variant(image="rocky 9/λ", user="a&b=c%", keep_alive="3600").text
        asked = request(harness)
        (made,) = driver.launch(request(harness, tags={**asked.tags, TAG_VARIANT: text}))
        (plain,) = driver.launch(asked)
        harness.wait(lambda: standing(driver) == {made.id, plain.id}, "both machines are listed")
        seen = {one.id: one.variant.text for one in driver.machines()}
        assert (made.variant.text, plain.variant.text) == (text, "")
        assert seen == {made.id: text, plain.id: ""}

    def test_a_network_that_is_not_there_is_refused(self, harness: Harness, driver: Machines) -> None:
        with pytest.raises(BadRequest):
            driver.launch(request(harness, network="no such network"))
        assert not standing(driver)

    def test_a_security_group_that_is_not_there_is_refused(self, harness: Harness, driver: Machines) -> None:
        with pytest.raises(BadRequest):
            driver.launch(request(harness, security_groups=("sg-0123456789abcdef0",)))
        assert not standing(driver)

    def test_a_running_machine_has_an_address(self, harness: Harness, driver: Machines) -> None:
        if not harness.boots:
            pytest.skip("nothing boots on this cloud")
        driver.launch(request(harness))
        harness.wait(lambda: any(one.address for one in driver.machines()), "the machine has an address")

    def test_machines_of_another_pool_are_not_listed(self, harness: Harness, driver: Machines) -> None:
        theirs = harness.made("another").machines
        tags = {**request(harness).tags, TAG_POOL: "another"}
        (other,) = theirs.launch(request(harness, tags=tags))
        (ours,) = driver.launch(request(harness))
        harness.wait(lambda: standing(driver) == {ours.id}, "our machine is listed, and only ours")
        harness.wait(lambda: standing(theirs) == {other.id}, "theirs is listed, and only theirs")

    @pytest.mark.parametrize("tags", [{}, {TAG_POOL: "conformance2"}, {TAG_LAUNCH: "k"}, {"Name": "x"}])
    def test_machines_without_our_tag_are_not_listed(
        self, harness: Harness, driver: Machines, tags: dict[str, str]
    ) -> None:
        foreign = harness.foreign(tags)
        if foreign is None:
            pytest.skip("this harness can't make foreign machines")
        (ours,) = driver.launch(request(harness))
        harness.wait(lambda: standing(driver) == {ours.id}, "our machine is listed, and only ours")
        assert harness.exists(foreign)

    def test_all_pages_are_listed(self, harness: Harness, driver: Machines) -> None:
        wanted = ids(driver.launch(request(harness, harness.many)))
        assert len(wanted) == harness.many
        harness.wait(lambda: standing(driver) == wanted, "every machine is listed")
        listed = [one.id for one in driver.machines()]
        assert len(listed) == len(set(listed))

    # ---------------------------------------------------------------------------------------- one by id

    def test_one_is_found_by_its_id(self, harness: Harness, driver: Machines) -> None:
        first, second = driver.launch(request(harness, 2))
        harness.wait(lambda: standing(driver) == {first.id, second.id}, "both machines are listed")

        def told() -> tuple[Instance | None, Instance]:
            (listed,) = (one for one in driver.machines() if one.id == first.id)
            return driver.look_up([first.id])[first.id], listed

        def agree() -> bool:
            """In the end: between two questions a machine may come to run, or get its address."""
            found, listed = told()
            return found == listed

        harness.wait(agree, "the look-up says what the listing says")
        assert told()[1].tagged

    def test_what_never_was_is_not_there_and_hides_nobody(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        harness.wait(lambda: made.id in standing(driver), "the machine is listed")
        nobody = self.unknown_id(made.id)
        found = driver.look_up([nobody, made.id, nobody])
        assert set(found) == {nobody, made.id}
        assert found[nobody] is None
        assert found[made.id] is not None

    def test_one_of_which_nothing_can_be_made_hides_nobody_and_is_not_gone(
        self, harness: Harness, driver: Machines
    ) -> None:
        made = ids(driver.launch(request(harness, 2)))
        harness.wait(lambda: standing(driver) == made, "two machines listed")
        odd, sane = sorted(made)
        shown = harness.shown_oddly(odd)
        if shown is None:
            pytest.skip("the harness can't have this cloud show a machine oddly")
        with shown:
            assert standing(driver) == {sane}
            assert list(driver.odd) == [odd]
            assert driver.look_up([odd, sane]).keys() == {sane}, "nothing is said of it: it isn't gone"
        assert standing(driver) == made
        assert not driver.odd

    def test_looking_nobody_up_is_nothing(self, driver: Machines) -> None:
        assert driver.look_up([]) == {}

    def test_one_that_has_ended_is_said_to_have(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        harness.wait(lambda: made.id in standing(driver), "the machine is listed")
        driver.terminate([made.id])

        def over() -> bool:
            found = driver.look_up([made.id])
            return found[made.id] is None or found[made.id].state is CloudState.TERMINATED

        harness.wait(over, "asked by its id, it has ended")

    def test_one_without_the_pools_tag_is_found_by_its_id(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        harness.wait(lambda: made.id in standing(driver), "the machine is listed")
        driver.tag([made.id], {TAG_POOL: None})
        harness.wait(lambda: made.id not in standing(driver), "it is listed no more")
        found = driver.look_up([made.id])[made.id]
        assert found is not None
        assert found.state in (CloudState.PENDING, CloudState.RUNNING)
        assert not found.tagged

    # --------------------------------------------------------------------------------------- terminate

    def test_terminated_machines_go(self, harness: Harness, driver: Machines) -> None:
        # A listing may leave out for a moment what is there: Nova does, between two of its records.
        driver.launch(request(harness, 3))
        harness.wait(lambda: len(standing(driver)) == 3, "all three are listed")
        first, second, third = sorted(standing(driver))
        driver.terminate([first, third])
        harness.wait(lambda: standing(driver) == {second}, "the one that was not named is left")
        harness.wait(
            lambda: not any(one.alive for one in driver.machines() if one.id != second),
            "the two that were named have ended",
        )
        harness.wait(lambda: not harness.exists(first), "nor has the cloud itself one of them any more")
        assert harness.exists(second)

    def test_terminating_twice_is_success(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        driver.terminate([made.id])
        driver.terminate([made.id])
        harness.wait(lambda: not harness.exists(made.id), "the machine is gone")
        driver.terminate([made.id])

    def test_terminating_what_never_was_is_success(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        driver.terminate([self.unknown_id(made.id), made.id])
        harness.wait(lambda: not harness.exists(made.id), "the known one of the two is gone")

    def test_terminating_nothing_ends_nothing(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        driver.terminate([])
        harness.wait(lambda: standing(driver) == {made.id}, "the machine is listed")

    def test_many_are_terminated_in_batches(self, harness: Harness, driver: Machines) -> None:
        made = driver.launch(request(harness, harness.many))
        driver.terminate(one.id for one in made)
        harness.wait(lambda: not any(one.alive for one in driver.machines()), "every machine has ended")

    # --------------------------------------------------------------------------------------------- tags

    def test_a_retiring_machine_is_seen_as_such_and_taken_back(
        self, harness: Harness, driver: Machines
    ) -> None:
        first, second = driver.launch(request(harness, 2))
        driver.tag([first.id], {TAG_RETIRING: "idle"})
        harness.wait(lambda: self.retiring(driver) == {first.id}, "one machine retires")
        driver.tag([first.id, second.id], {TAG_RETIRING: None})
        harness.wait(lambda: self.retiring(driver) == set(), "none retires any more")
        assert standing(driver) == {first.id, second.id}

    def test_a_tag_is_written_over(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        driver.tag([made.id], {TAG_GENERATION: "g2"})
        driver.tag([made.id], {TAG_GENERATION: "g3"})
        harness.wait(lambda: {one.generation for one in driver.machines()} == {"g3"}, "the last one holds")

    def test_whose_it_is_beyond_the_name_is_shown(self, harness: Harness, driver: Machines) -> None:
        """By the listing and by its id: two pools may have one name."""
        asked = request(harness)
        (made,) = driver.launch(replace(asked, tags={**asked.tags, TAG_IDENTITY: "0123456789ab"}))
        known = lambda: {one.identity for one in driver.machines()} == {"0123456789ab"}  # noqa: E731
        harness.wait(known, "its identity is listed")
        told = driver.look_up([made.id])[made.id]
        assert told is not None
        assert told.identity == "0123456789ab"

    def test_tagging_what_is_gone_is_success(self, harness: Harness, driver: Machines) -> None:
        first, second = driver.launch(request(harness, 2))
        driver.terminate([first.id])
        harness.wait(lambda: not harness.exists(first.id), "the first is gone")
        driver.tag([first.id, self.unknown_id(first.id), second.id], {TAG_RETIRING: "yes"})
        harness.wait(lambda: second.id in self.retiring(driver), "the other one has its tag")

    def test_without_the_pool_tag_a_machine_is_no_longer_ours(
        self, harness: Harness, driver: Machines
    ) -> None:
        (made,) = driver.launch(request(harness))
        driver.tag([made.id], {TAG_POOL: None})
        harness.wait(lambda: made.id not in ids(driver.machines()), "it is listed no more")
        assert harness.exists(made.id)

    # ---------------------------------------------------------------------------------- offers, quotas

    def test_offers_are_sane(self, harness: Harness, driver: Machines) -> None:
        offers = driver.offers()
        assert len(offers) == len({(one.zone, one.flavor, one.market) for one in offers})
        for one in offers:
            assert one.cloud == driver.name
            assert one.resources.cpus > 0
            assert 64 <= one.resources.memory <= 64 * 2**20, "MiB"
            assert one.resources.disk >= 2**16, "KiB"
            assert one.resources.gpus >= 0
            assert one.price is None or one.price >= 0
            assert one.left is None or one.left >= 0
            assert one.arch in ("X86_64", "aarch64")

    def test_what_is_launched_is_on_offer(self, harness: Harness, driver: Machines) -> None:
        here = (harness.zone, harness.flavor, harness.market)
        assert here in {(one.zone, one.flavor, one.market) for one in driver.offers()}

    def test_quotas_are_none_only_where_unknown_or_unlimited(self, driver: Machines) -> None:
        quota = driver.quota()
        assert quota.unlimited <= {"machines", "cores", "memory"}
        for name in quota.unlimited:
            assert getattr(quota, name) is None

    def test_the_quota_counts_our_machines(self, harness: Harness, driver: Machines) -> None:
        self.limit(harness, 5)
        driver.launch(request(harness, 2))
        harness.wait(lambda: driver.quota().machines == 3, "three are left of five")

    def test_the_quota_counts_foreign_machines(self, harness: Harness, driver: Machines) -> None:
        self.limit(harness, 5)
        if harness.foreign({}) is None:
            pytest.skip("this harness can't make foreign machines")
        harness.wait(lambda: driver.quota().machines == 4, "four are left of five")
        used = driver.quota().used_machines
        assert used is None or used >= 1, "what the quota says is used has everybody's machines in it"

    def test_beyond_the_quota_nothing_is_made(self, harness: Harness, driver: Machines) -> None:
        self.limit(harness, 2)
        made = driver.launch(request(harness, 2))
        with pytest.raises(QuotaExceeded):
            driver.launch(request(harness))
        harness.wait(lambda: standing(driver) == ids(made), "the two are there, and no third")

    def test_the_quota_comes_back(self, harness: Harness, driver: Machines) -> None:
        self.limit(harness, 1)
        (made,) = driver.launch(request(harness))
        driver.terminate([made.id])
        harness.wait(lambda: driver.quota().machines == 1, "the quota is free again")
        assert len(driver.launch(request(harness))) == 1

    # ------------------------------------------------------------------------------------------ errors

    @pytest.mark.parametrize(
        "changes",
        [{"image": "no-such-image"}, {"flavor": "no-such-flavor"}, {"zone": "no-such-zone"}],
        ids=["image", "flavor", "zone"],
    )
    def test_what_the_cloud_does_not_know_is_a_bad_request(
        self, harness: Harness, driver: Machines, changes: dict[str, str]
    ) -> None:
        with pytest.raises(BadRequest):
            driver.launch(request(harness, **changes))
        assert driver.machines() == ()

    @pytest.mark.parametrize(
        "error", [NoCapacity, QuotaExceeded, Throttled, AuthFailed, BadRequest, CloudUnavailable]
    )
    def test_errors_are_mapped(self, harness: Harness, driver: Machines, error: type[CloudError]) -> None:
        failure = harness.failing(error)
        if failure is None:
            pytest.skip(f"this cloud can't be made to answer with {error.code}")
        with failure, pytest.raises(error) as raised:
            driver.launch(request(harness))
        assert type(raised.value) is error
        assert str(raised.value)
        assert driver.machines() == ()

    @pytest.mark.parametrize("error", [Throttled, AuthFailed, CloudUnavailable])
    @pytest.mark.parametrize("by_id", [False, True], ids=["listing", "by-id"])
    def test_a_look_that_fails_is_never_empty(
        self, harness: Harness, driver: Machines, error: type[CloudError], by_id: bool
    ) -> None:
        (made,) = driver.launch(request(harness))
        failure = harness.failing(error)
        if failure is None:
            pytest.skip(f"this cloud can't be made to answer with {error.code}")
        with failure, pytest.raises(error):
            driver.look_up([made.id]) if by_id else driver.machines()

    # ----------------------------------------------------------------------------------------- console

    def test_the_console_of_a_machine_is_text(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        if harness.boots:
            harness.wait(lambda: bool(driver.console(made.id)), "the machine has printed something")
        assert len(driver.console(made.id).encode()) <= 64 * 1024

    def test_a_machine_that_never_was_has_no_console(self, harness: Harness, driver: Machines) -> None:
        (made,) = driver.launch(request(harness))
        assert driver.console(self.unknown_id(made.id)) == ""

    # --------------------------------------------------------------------------------------- the tools

    def unknown_id(self, known: str) -> str:
        """An id of the right form that no instance has; a driver may need its own."""
        return known[:-4] + ("9999" if known[-4:] != "9999" else "9998")

    def limit(self, harness: Harness, machines: int) -> None:
        if not harness.set_quota(machines):
            pytest.skip("this cloud's quota can't be set")

    def retiring(self, driver: Machines) -> set[str]:
        return {one.id for one in driver.machines() if one.retiring}
