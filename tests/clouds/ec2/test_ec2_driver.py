"""What the EC2 driver does beyond the contract: calls counted, each error's own answer, awkward endpoints."""

import gzip
import json
import threading
from pathlib import Path

import pytest

from tests.rigs.clouds.ec2endpoint import REGION, Endpoint, Quirks, Served, Trouble
from tests.rigs.clouds.ec2harness import EC2Harness
from tests.rigs.clouds.harness import request
from updraft.clouds.base import TAG_CLASS, TAG_POOL, Catalogue
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.driver import EC2Driver
from updraft.clouds.ec2.reading import instance_of
from updraft.clouds.ec2.settings import Settings
from updraft.config.drivers import checked_settings
from updraft.core.model import CloudState, Resources
from updraft.errors import (
    AuthFailed,
    BadRequest,
    CloudError,
    CloudUnavailable,
    NoCapacity,
    QuotaExceeded,
    Throttled,
)


@pytest.fixture
def harness(served: Served) -> EC2Harness:
    return EC2Harness(served, page_size=1000)


@pytest.fixture
def endpoint(harness: EC2Harness) -> Endpoint:
    return harness.endpoint


@pytest.fixture
def driver(harness: EC2Harness) -> EC2Driver:
    return harness.driver()


# ----------------------------------------------------------------------------------------------- launches


@pytest.mark.slow
def test_a_launch_is_one_call_with_all_that_a_machine_needs(harness: EC2Harness, endpoint: Endpoint) -> None:
    harness.own.create_key_pair(KeyName="mine")
    driver = harness.driver(
        key_name="mine", tags={"project": "p1"}, instance_profile="", security_groups=["default"]
    )
    driver.launch(request(harness, 1))  # the first one looks whether it was asked for before
    asked = request(harness, 50)
    before = len(endpoint.log)
    assert len(driver.launch(asked)) == 50
    (call,) = endpoint.log[before:]
    sent = call.parameters
    assert (sent["MinCount"], sent["MaxCount"], sent["ClientToken"]) == ("1", "50", asked.key)
    assert sent["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert sent["MetadataOptions.HttpTokens"] == "optional"  # as cloud-init asks where it isn't Amazon
    assert sent["MetadataOptions.HttpPutResponseHopLimit"] == "1"
    assert (sent["KeyName"], sent["SecurityGroup.1"]) == ("mine", "default")
    (one, *_) = endpoint.standing()
    assert harness.tags(one) | {"project": "p1", "Name": "conformance-small", TAG_CLASS: "small"} == (
        harness.tags(one)
    )


@pytest.mark.slow  # moto makes fifty machines a second
def test_five_hundred_machines_end_with_one_call_and_one_more_with_two(
    harness: EC2Harness, driver: EC2Driver
) -> None:
    (made,) = driver.launch(request(harness))
    driver.machines()
    harness.endpoint.multiply(made.id, 500)
    harness.endpoint.log.clear()
    ids = [one.id for one in harness.driver(page_size=1000).machines()]
    assert len(ids) == 501
    driver.terminate(ids)
    assert harness.endpoint.standing() == []
    assert [call.action for call in harness.endpoint.calls()] == [
        "DescribeInstances",
        "TerminateInstances",
        "TerminateInstances",
    ]


def test_a_part_is_better_than_nothing(harness: EC2Harness, driver: EC2Driver, endpoint: Endpoint) -> None:
    endpoint.quirks.capacity[f"{harness.zone}/{harness.flavor}"] = 3
    assert len(driver.launch(request(harness, 8))) == 3
    with pytest.raises(NoCapacity, match=f"{harness.flavor} in {harness.zone}"):
        driver.launch(request(harness, 8))
    assert len(driver.launch(request(harness, 2, zone=f"{REGION}a"))) == 2


def test_the_same_key_with_other_user_data_finds_the_first_machines(
    harness: EC2Harness, driver: EC2Driver
) -> None:
    made = driver.launch(request(harness, 2, key="again"))
    again = driver.launch(request(harness, 2, key="again", user_data=b"#!/bin/sh\n# another token\n"))
    assert {one.id for one in again} == {one.id for one in made}
    assert len(harness.endpoint.standing()) == 2


def test_a_mismatch_before_the_listing_shows_it_is_unknown(served: Served) -> None:
    harness = EC2Harness(served, Quirks(shows_after=60))
    driver = harness.driver()
    driver.launch(request(harness, 2, key="again"))
    with pytest.raises(CloudUnavailable, match="aren't listed yet"):
        driver.launch(request(harness, 2, key="again", user_data=b"other"))


def test_a_long_key_is_sent_by_its_hash(harness: EC2Harness, driver: EC2Driver, endpoint: Endpoint) -> None:
    key = "a-class-with-a-name-as-long-as-names-may-be-and-then-some-" * 2
    (made,) = driver.launch(request(harness, key=key))
    assert made.launch_key == key
    assert len(endpoint.calls("RunInstances")[0].parameters["ClientToken"]) == 64


def test_user_data_beyond_the_limit_is_refused_before_it_is_sent(
    harness: EC2Harness, driver: EC2Driver, endpoint: Endpoint
) -> None:
    with pytest.raises(BadRequest, match="16385 bytes"):
        driver.launch(request(harness, user_data=b"x" * (16 * 1024 + 1)))
    assert not endpoint.calls("RunInstances")
    assert len(driver.launch(request(harness, user_data=b"x" * 16 * 1024))) == 1


def test_a_launch_is_never_tried_twice_by_the_library(
    harness: EC2Harness, driver: EC2Driver, endpoint: Endpoint
) -> None:
    with endpoint.trouble(Trouble("RunInstances", "InternalError", 500)), pytest.raises(CloudUnavailable):
        driver.launch(request(harness))
    assert len(endpoint.calls("RunInstances")) == 1


def test_a_read_is_tried_again(driver: EC2Driver, endpoint: Endpoint) -> None:
    with endpoint.trouble(Trouble("DescribeInstances", "InternalError", 500, times=1)):
        assert driver.machines() == ()
    assert len(endpoint.calls("DescribeInstances")) == 2


def test_an_endpoint_that_hangs_is_given_up(harness: EC2Harness, endpoint: Endpoint) -> None:
    driver = harness.driver(timeout="0.3s")
    asked, answered = request(harness, 2), threading.Event()
    with (
        endpoint.trouble(Trouble("RunInstances", until=answered, times=1)),
        pytest.raises(CloudUnavailable, match="Read timeout"),
    ):
        driver.launch(asked)
    answered.set()
    harness.wait(lambda: len(endpoint.standing()) == 2, "the machines were made all the same")
    assert {one.launch_key for one in driver.machines()} == {asked.key}


@pytest.mark.parametrize("by", ["Name", "Id"])
def test_a_launch_template_is_passed_on_and_what_is_ours_goes_before_it(harness: EC2Harness, by: str) -> None:
    made = harness.own.create_launch_template(
        LaunchTemplateName=f"site-{by}", LaunchTemplateData={"InstanceType": "t3.large"}
    )["LaunchTemplate"]
    driver = harness.driver(launch_template=made[f"LaunchTemplate{by}"], launch_template_version="1")
    (machine,) = driver.launch(request(harness))
    (call,) = harness.endpoint.calls("RunInstances")
    sent = call.parameters
    assert sent[f"LaunchTemplate.LaunchTemplate{by}"] == made[f"LaunchTemplate{by}"]
    assert sent["LaunchTemplate.Version"] == "1"
    assert sent["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert sent["MetadataOptions.HttpPutResponseHopLimit"] == "1"
    assert machine.flavor == harness.flavor, "the offer's, not the template's"


@pytest.mark.parametrize(
    ("said", "amazon", "asked"),
    [
        (None, False, "optional"),
        (None, True, "required"),
        ("required", False, "required"),
        ("optional", True, "optional"),
    ],
)
def test_a_token_for_the_metadata_is_required_where_cloud_init_gets_one(
    harness: EC2Harness, monkeypatch: pytest.MonkeyPatch, said: str | None, amazon: bool, asked: str
) -> None:
    monkeypatch.setattr(Connection, "amazon", property(lambda _: amazon))
    driver = harness.driver(metadata_tokens=said, image_owners=["self"])
    driver.launch(request(harness))
    (call,) = harness.endpoint.calls("RunInstances")
    assert call.parameters["MetadataOptions.HttpTokens"] == asked
    assert call.parameters["MetadataOptions.HttpPutResponseHopLimit"] == "1"
    assert driver.known.has("metadata-options") is True


# --------------------------------------------------------------------------------------------------- spot


def test_spot_is_asked_for_with_the_sites_cap(harness: EC2Harness, tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"regions": {REGION: {"t3.small": 0.02}}}))
    driver = harness.driver(price_file=str(file), spot_cap=0.5)
    (made,) = driver.launch(request(harness, market="spot"))
    assert made.market == "spot"
    sent = harness.endpoint.calls("RunInstances")[0].parameters
    assert sent["InstanceMarketOptions.SpotOptions.MaxPrice"] == "0.010000"
    offers = {(one.flavor, one.market): one for one in driver.offers() if one.zone == harness.zone}
    assert offers["t3.small", "on-demand"].price == 0.02
    assert offers["t3.small", "spot"].price == pytest.approx(0.00001)
    assert ("t3.large", "spot") not in offers, "its cap can't be known"
    assert offers["t3.large", "on-demand"].price is None


def test_spot_that_is_refused_stays_refused_and_is_never_bought_dearly(served: Served) -> None:
    harness = EC2Harness(served, Quirks(spot="refuse"))
    driver = harness.driver()
    with pytest.raises(BadRequest):
        driver.launch(request(harness, market="spot"))
    assert not harness.endpoint.standing()
    assert {one.market for one in driver.offers()} == {"on-demand"}
    assert "endpoint: spot" in {one.what for one in driver.findings()}


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("InsufficientInstanceCapacity", 500, NoCapacity),
        ("InsufficientHostCapacity", 500, NoCapacity),
        ("SpotMaxPriceTooLow", 400, NoCapacity),
        ("Unsupported", 400, NoCapacity),
        ("InstanceLimitExceeded", 400, QuotaExceeded),
        ("VcpuLimitExceeded", 400, QuotaExceeded),
        ("MaxSpotInstanceCountExceeded", 400, QuotaExceeded),
        ("RequestLimitExceeded", 503, Throttled),
        ("Throttling", 400, Throttled),
        ("AuthFailure", 401, AuthFailed),
        ("UnauthorizedOperation", 403, AuthFailed),
        ("ExpiredToken", 400, AuthFailed),
        ("InvalidAMIID.NotFound", 400, BadRequest),
        ("InvalidParameterValue", 400, BadRequest),
        ("InvalidKeyPair.NotFound", 400, BadRequest),
        ("NobodyKnowsThis", 400, BadRequest),
        ("NobodyKnowsThis", 403, AuthFailed),
        ("NobodyKnowsThis", 500, CloudUnavailable),
        ("Unavailable", 503, CloudUnavailable),
    ],
)
def test_each_error_has_its_own_answer(
    harness: EC2Harness, driver: EC2Driver, code: str, status: int, error: type[CloudError]
) -> None:
    trouble = Trouble("RunInstances", code, status, "so it is")
    with harness.endpoint.trouble(trouble), pytest.raises(error) as raised:
        driver.launch(request(harness))
    assert type(raised.value) is error
    assert f"cloud cloud, launching 1 × t3.small in {harness.zone}: {code}: so it is" in str(raised.value)
    assert raised.value.__cause__ is not None


def test_throttling_says_how_long_where_the_cloud_does(harness: EC2Harness, driver: EC2Driver) -> None:
    trouble = Trouble("RunInstances", "RequestLimitExceeded", 503, headers=(("Retry-After", "7"),))
    with harness.endpoint.trouble(trouble), pytest.raises(Throttled) as raised:
        driver.launch(request(harness))
    assert raised.value.retry_after == 7


def test_no_secret_is_in_an_error(harness: EC2Harness, driver: EC2Driver) -> None:
    trouble = Trouble("*", "AuthFailure", 401, "no such key: not-to-be-seen of driver; tell nobody")
    with harness.endpoint.trouble(trouble), pytest.raises(AuthFailed) as raised:
        driver.machines()
    assert "not-to-be-seen" not in str(raised.value)
    assert "no such key" in str(raised.value)


def test_an_answer_that_is_no_xml_is_no_answer(harness: EC2Harness, served: Served) -> None:
    driver = harness.driver(endpoint=served.url.replace("/services/Cloud", "/elsewhere"))
    with pytest.raises(CloudUnavailable) as raised:
        driver.machines()
    assert "no such page" not in str(raised.value)


def test_nobody_there_is_unavailable(harness: EC2Harness) -> None:
    with pytest.raises(CloudUnavailable, match="Could not connect"):
        harness.driver(endpoint="http://127.0.0.1:9/").launch(request(harness))


def test_without_credentials_it_says_so(harness: EC2Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AuthFailed, match="credentials"):
        harness.driver().machines()
    with pytest.raises(AuthFailed, match="profile"):
        harness.driver(profile="nobody").machines()


def test_wrong_credentials_are_refused_at_start_and_in_mid_run(
    harness: EC2Harness, driver: EC2Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = driver.launch(request(harness))
    harness.endpoint.quirks.access_keys = frozenset({"tester"})
    for call in (driver.machines, driver.offers, lambda: driver.terminate([made.id])):
        with pytest.raises(AuthFailed):
            call()
    harness.endpoint.quirks.access_keys = frozenset({"tester", "driver"})
    assert [one.id for one in driver.machines()] == [made.id]


def test_credentials_that_come_later_are_found(
    harness: EC2Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    driver = harness.driver()
    with pytest.raises(AuthFailed):
        driver.machines()
    file.write_text("[default]\naws_access_key_id = driver\naws_secret_access_key = s\n")
    assert driver.machines() == ()


def test_an_ec2rc_is_understood(harness: EC2Harness, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    for name, value in (("ACCESS_KEY", "driver"), ("SECRET_KEY", "s"), ("URL", served.url)):
        monkeypatch.setenv(f"EC2_{name}", value)
    settings = {key: value for key, value in harness.settings.items() if key != "endpoint"}
    harness.settings = settings
    driver = harness.driver()
    assert len(driver.launch(request(harness))) == 1
    assert harness.endpoint.calls("RunInstances", who="driver")


def test_credentials_that_only_this_shell_has_are_said(
    harness: EC2Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = "credentials of the service"
    assert what in {one.what for one in harness.driver().findings()}
    for name, value in (("ACCESS_KEY", "driver"), ("SECRET_KEY", "s")):
        monkeypatch.delenv(f"AWS_{name}_ID" if name == "ACCESS_KEY" else "AWS_SECRET_ACCESS_KEY")
        monkeypatch.setenv(f"EC2_{name}", value)
    assert what in {one.what for one in harness.driver().findings()}, "an ec2rc.sh"
    monkeypatch.delenv("EC2_ACCESS_KEY")
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text("[default]\naws_access_key_id = driver\naws_secret_access_key = s\n")
    assert what not in {one.what for one in harness.driver().findings()}


# ------------------------------------------------------------------------------------- eventual consistency


def test_a_machine_that_is_to_end_before_it_is_shown_ends_when_it_is(served: Served) -> None:
    harness = EC2Harness(served, Quirks(shows_after=3600, hidden_unknown=True))
    driver = harness.driver()
    first, second = driver.launch(request(harness, 2))
    driver.terminate([first.id])
    assert harness.endpoint.exists(first.id), "the endpoint didn't know it yet"
    harness.endpoint.quirks.shows_after = 0
    harness.wait(lambda: bool(driver.machines()) and not harness.exists(first.id), "it has ended")
    assert harness.exists(second.id)


def test_machines_that_are_not_shown_yet_count_against_the_quota(served: Served) -> None:
    harness = EC2Harness(served, Quirks(shows_after=60, quota=5))
    driver = harness.driver()
    driver.launch(request(harness, 2))
    assert driver.machines() == ()
    assert driver.quota().machines == 3


def test_a_terminated_machine_that_is_still_listed_is_not_alive(
    harness: EC2Harness, driver: EC2Driver
) -> None:
    (made,) = driver.launch(request(harness))
    driver.terminate([made.id])
    harness.wait(lambda: driver.machines()[0].state is CloudState.TERMINATED, "it is listed as terminated")
    assert driver.machines()[0].address == ""


def test_one_machine_that_is_gone_does_not_keep_the_others(harness: EC2Harness, driver: EC2Driver) -> None:
    made = [one.id for one in driver.launch(request(harness, 20))]
    gone = [f"i-0000000000000{number:04}" for number in range(5)]
    harness.endpoint.log.clear()
    driver.terminate([*gone[:3], *made, *gone[3:]])
    assert not harness.endpoint.standing()
    assert len(harness.endpoint.calls("TerminateInstances")) == 2


# --------------------------------------------------------------------------------------------- old endpoints


def test_what_is_lacking_is_found_out_once_and_said(served: Served) -> None:
    lacks = Quirks(client_token="refuse", tag_on_create="refuse", metadata_options="refuse")  # noqa: S106
    harness = EC2Harness(served, lacks)
    driver = harness.driver()
    driver.launch(request(harness))
    assert len(harness.endpoint.calls("RunInstances")) == 4, "one refusal for each, and the launch"
    driver.launch(request(harness))
    assert len(harness.endpoint.calls("RunInstances")) == 5
    said = {one.what: one for one in driver.findings()}
    assert {"endpoint: client-token", "endpoint: tag-on-create", "endpoint: metadata-options"} <= set(said)
    assert all(said[what].state == "warning" and said[what].remedy for what in said if "endpoint" in what)


def test_what_the_settings_say_is_lacking_is_not_tried(harness: EC2Harness) -> None:
    driver = harness.driver(lacks=["client-token", "tag-on-create", "metadata-options"])
    (made,) = driver.launch(request(harness))
    (sent,) = [call.parameters for call in harness.endpoint.calls("RunInstances")]
    assert not [name for name in sent if name.startswith(("ClientToken", "TagSpec", "Metadata"))]
    assert harness.tags(made.id)[TAG_POOL] == "conformance"


def test_tags_that_could_not_be_written_are_written_later(served: Served) -> None:
    harness = EC2Harness(served, Quirks(tag_on_create="ignore"))
    driver = harness.driver()
    with harness.endpoint.trouble(Trouble("CreateTags", "InternalError", 500)):
        (made,) = driver.launch(request(harness))
        assert [one.id for one in driver.machines()] == [made.id], "it counts, tagged or not"
        assert TAG_POOL not in harness.tags(made.id)
    assert driver.machines()[0].launch_key == made.launch_key
    assert harness.tags(made.id)[TAG_POOL] == "conformance"


def test_user_data_proves_whose_a_machine_is_unless_it_was_let_go(served: Served) -> None:
    harness = EC2Harness(served, Quirks(tag_on_create="ignore"))
    lines = b'UpdraftPool = "conformance"\n UpdraftLaunch = "k-1"\nUpdraftClass = "small"\n'
    ours = harness.foreign({}, user_data=gzip.compress(lines))
    harness.foreign({}, user_data=lines.replace(b"conformance", b"another"))
    harness.foreign({}, user_data=b"#!/bin/sh\n")
    driver = harness.driver()
    assert [(one.id, one.launch_key, one.worker_class) for one in driver.machines()] == [
        (ours, "k-1", "small")
    ]
    assert harness.tags(ours)[TAG_POOL] == "conformance"
    driver.machines()
    assert len(harness.endpoint.calls("DescribeInstanceAttribute")) == 3, "nobody is looked into twice"
    driver.tag([ours], {TAG_POOL: None})
    assert driver.machines() == ()
    assert harness.driver().machines() == ()


# ------------------------------------------------------------------------------------------------ catalogue


def test_offers_hold_what_the_endpoint_says(harness: EC2Harness, driver: EC2Driver) -> None:
    offers = {one.flavor: one for one in driver.offers() if one.zone == harness.zone}
    assert offers["t3.medium"].resources == Resources(2, 4096, 8 * 2**20, 0)
    assert set(offers) == {
        f"t3.{size}" for size in ("nano", "micro", "small", "medium", "large", "xlarge", "2xlarge")
    }
    fewer = {one.flavor for one in harness.driver(flavors=["t3.*", "!t3.*large", "!t3.nano"]).offers()}
    assert fewer == {"t3.micro", "t3.small", "t3.medium"}
    gpus = harness.driver(flavors=["g4dn.12xlarge", "m6g.large"], architectures=["x86_64", "arm64"]).offers()
    assert {one.flavor: (one.resources.gpus, one.arch) for one in gpus} == {
        "g4dn.12xlarge": (4, "X86_64"),
        "m6g.large": (0, "aarch64"),
    }


def test_types_and_zones_are_asked_for_once(harness: EC2Harness, driver: EC2Driver) -> None:
    driver.offers()
    harness.endpoint.log.clear()
    driver.offers()
    assert [call.action for call in harness.endpoint.calls()] == ["DescribeSpotPriceHistory"]


def test_zones_and_subnets_narrow_the_offers(harness: EC2Harness) -> None:
    (subnet,) = harness.own.describe_subnets(
        Filters=[{"Name": "availability-zone", "Values": [f"{REGION}a"]}]
    )["Subnets"]
    driver = harness.driver(subnets={f"{REGION}a": subnet["SubnetId"]})
    assert {one.zone for one in driver.offers()} == {f"{REGION}a"}
    (made,) = driver.launch(request(harness, zone=f"{REGION}a"))
    assert made.zone == f"{REGION}a"
    with pytest.raises(BadRequest, match="no subnet"):
        driver.launch(request(harness))
    assert {one.zone for one in harness.driver(zones=f"{REGION}c").offers()} == {f"{REGION}c"}


def test_a_network_of_the_request_is_a_subnet_in_place_of_the_settings(harness: EC2Harness) -> None:
    a, b = (
        harness.own.describe_subnets(Filters=[{"Name": "availability-zone", "Values": [f"{REGION}{zone}"]}])[
            "Subnets"
        ][0]["SubnetId"]
        for zone in "ab"
    )
    driver = harness.driver(subnets={f"{REGION}a": a})
    (made,) = driver.launch(request(harness, zone=f"{REGION}b", network=b))
    (shown,) = harness.own.describe_instances(InstanceIds=[made.id])["Reservations"][0]["Instances"]
    assert shown["SubnetId"] == b
    with pytest.raises(BadRequest, match="isn't in zone"):
        driver.launch(request(harness, zone=f"{REGION}b", network=a))
    with pytest.raises(BadRequest, match="no subnet"):
        driver.launch(request(harness, zone=f"{REGION}a", network="private"))


def test_security_groups_of_the_request_are_in_place_of_the_settings(harness: EC2Harness) -> None:
    own = harness.own
    group = own.create_security_group(GroupName="burst", Description="of an annex")["GroupId"]
    try:
        driver = harness.driver(security_groups=["default"])
        (made,) = driver.launch(request(harness, security_groups=(group,)))
        (shown,) = own.describe_instances(InstanceIds=[made.id])["Reservations"][0]["Instances"]
        assert [one["GroupId"] for one in shown["SecurityGroups"]] == [group]
        with pytest.raises(BadRequest, match="by id"):
            driver.launch(request(harness, security_groups=("burst",)))
        own.terminate_instances(InstanceIds=[made.id])
    finally:
        own.delete_security_group(GroupId=group)


def test_an_image_name_means_the_newest_of_that_name(harness: EC2Harness, driver: EC2Driver) -> None:
    (made,) = driver.launch(request(harness, image="worker"))
    assert made.image == "ami-00000000000000002"
    with pytest.raises(BadRequest, match="no image nothing"):
        driver.launch(request(harness, image="nothing"))


def test_the_catalogue(harness: EC2Harness, driver: EC2Driver) -> None:
    assert isinstance(driver, Catalogue)
    assert driver.cloud.catalogue is driver
    assert [(one.name, one.id[-1], one.arch) for one in driver.images()] == [
        ("other", "3", "x86_64"),
        ("worker", "2", "x86_64"),
        ("worker", "1", "x86_64"),
    ]
    assert [driver.image(one) and driver.image(one).id[-1] for one in ("worker", "other", "no")] == [
        "2",
        "3",
        None,
    ]
    assert "PRIVATE KEY" in driver.create_key_pair("fresh")
    assert driver.key_pairs() == ("fresh",)
    driver.delete_key_pair("fresh")
    driver.delete_key_pair("fresh")
    assert driver.key_pairs() == ()
    driver.create_key_pair("fresh")
    with pytest.raises(BadRequest):
        driver.create_key_pair("fresh")


@pytest.mark.slow
def test_security_groups_are_looked_at(harness: EC2Harness) -> None:
    def said(*groups: str) -> tuple[str, str]:
        (one,) = [one for one in harness.driver(security_groups=groups).findings() if "groups" in one.what]
        return one.state, one.text

    made = harness.own.create_security_group(GroupName="workers", Description="-")["GroupId"]
    assert said() == ("ok", "the cloud's default one; the head must let workers in at TCP 9618")
    assert said("workers")[0] == said(made)[0] == "ok"
    state, text = said("workers", "wrokers")
    assert (state, "wrokers" in text) == ("problem", True)
    everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    harness.own.revoke_security_group_egress(GroupId=made, IpPermissions=[everything])
    web = {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 443, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    harness.own.authorize_security_group_egress(GroupId=made, IpPermissions=[web])
    state, text = said(made)
    assert (state, "9618" in text) == ("warning", True)
    pool = {"IpProtocol": "tcp", "FromPort": 9618, "ToPort": 9618, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    harness.own.authorize_security_group_egress(GroupId=made, IpPermissions=[pool])
    assert said(made)[0] == "ok"
    with harness.endpoint.trouble(Trouble("DescribeSecurityGroups", "UnauthorizedOperation", 403)):
        state, text = said(made)
    assert (state, "not looked at" in text) == ("ok", True), "a right that only this needs"
    harness.own.delete_security_group(GroupId=made)


def test_a_quota_is_reckoned_from_a_listing_that_is_fresh_and_nothing_came_after(
    harness: EC2Harness,
) -> None:
    now = [0.0]
    harness.set_quota(5)
    settings = checked_settings(Settings, "cloud", harness.settings)
    driver = EC2Driver("cloud", "conformance", settings, Connection("cloud", settings), lambda: now[0])

    def listings() -> int:
        """How many the quota takes after one of the machines, and that it is right."""
        harness.endpoint.log.clear()
        assert driver.quota().machines == 5 - len(harness.endpoint.standing())
        return len(harness.endpoint.calls("DescribeInstances"))

    def still() -> None:
        """Nothing of ours is on its way."""
        moving = (CloudState.PENDING, CloudState.STOPPING)
        harness.wait(lambda: not any(one.state in moving for one in driver.machines()), "all stand still")

    still()
    assert listings() == 0
    harness.endpoint.quirks.boots_in = 3600
    (made,) = driver.launch(request(harness))
    assert listings() == 1, "a launch came after it"
    driver.machines()
    assert listings() == 1, "a machine is on its way up: the next listing may count another"
    harness.endpoint.quirks.boots_in = 0.1
    still()
    assert listings() == 0
    now[0] += 20
    assert listings() == 1, "it is old"
    still()
    lost = harness.endpoint.trouble(Trouble("RunInstances", after=True, lose=True))
    with lost, pytest.raises(CloudUnavailable):
        driver.launch(request(harness, key="lost"))
    assert listings() == 1, "a launch of which nobody knows what became came after it"
    still()
    driver.terminate([made.id])
    harness.endpoint.log.clear()
    driver.quota()
    assert len(harness.endpoint.calls("DescribeInstances")) == 1, "an end came after it"


def test_a_quota_that_has_no_end_and_one_that_nobody_knows(harness: EC2Harness, driver: EC2Driver) -> None:
    assert driver.quota().unlimited == {"machines"}
    harness.endpoint.quirks.account_attributes = False
    assert (driver.quota().machines, driver.quota().unlimited) == (None, frozenset())


def test_a_root_volume_is_never_smaller_than_the_image(harness: EC2Harness) -> None:
    driver = harness.driver(root_volume="30GiB")
    driver.launch(request(harness))
    sent = harness.endpoint.calls("RunInstances")[0].parameters
    assert sent["BlockDeviceMapping.1.Ebs.VolumeSize"] == "30"
    assert sent["BlockDeviceMapping.1.Ebs.DeleteOnTermination"] == "true"
    assert {one.resources.disk for one in driver.offers()} == {30 * 2**20}


# --------------------------------------------------------------------------------------------------- Amazon


def test_of_amazons_own_service_it_is_known_what_it_can_do(
    harness: EC2Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "amazon", True)
    harness.foreign({"Name": "theirs"})
    driver = harness.driver(region="us-east-1", zones=["us-east-1a"], flavors=["t3.small", "m1.small"])
    prices = {one.flavor: one.price for one in driver.offers() if one.market == "on-demand"}
    assert prices == {"t3.small": 0.0208, "m1.small": None}, "the shipped table, and nothing made up"
    driver = harness.driver()
    harness.endpoint.log.clear()
    (made,) = driver.launch(request(harness))
    assert [one.id for one in driver.machines()] == [made.id]
    assert driver.quota().machines is None
    assert driver.quota().unlimited == frozenset()
    calls = harness.endpoint.calls()
    assert [call.action for call in calls] == ["RunInstances", "DescribeInstances"]
    assert calls[1].parameters["Filter.1.Name"] == f"tag:{TAG_POOL}"
    assert {one.name for one in driver.images()} == {"worker", "other"}
    assert harness.endpoint.calls("DescribeImages")[0].parameters["Owner.1"] == "self"


@pytest.mark.parametrize(
    ("said", "state", "unknown"),
    [
        ("running", CloudState.RUNNING, ""),
        ("stopped", CloudState.STOPPED, ""),
        ("resize", CloudState.RUNNING, "resize"),
        ("migrating", CloudState.RUNNING, "migrating"),
        ("x" * 100, CloudState.RUNNING, "x" * 40),
        ("", CloudState.RUNNING, "none"),
    ],
)
def test_a_state_that_nobody_knows_is_no_error(said: str, state: CloudState, unknown: str) -> None:
    found = instance_of({"InstanceId": "i-1", "State": {"Name": said}}, {}, "c")
    assert (found.state, found.unknown_state, found.fault) == (state, unknown, "")
