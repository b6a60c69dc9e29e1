"""What ships with the driver, and what its settings say."""

import gzip
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from tests.rigs.clouds.made import made
from updraft.bootstrap.layers import parse_layer
from updraft.bootstrap.worker.userdata import WorkerSpec, worker_user_data
from updraft.clouds.base import TAG_CLASS, TAG_GENERATION, TAG_IDENTITY, TAG_LAUNCH, TAG_POOL, TAG_VARIANT
from updraft.clouds.ec2 import Settings
from updraft.clouds.ec2.prices import shipped
from updraft.clouds.ec2.reading import ATTRIBUTES, claims_in
from updraft.condor import base as condor
from updraft.errors import ConfigError

ROOT = Path(__file__).parents[3]

IMAGING = "imaging.py"  # what a person does with images, with rights of their own
NETWORKING = "networking.py"  # and with security groups
LEAVINGS = "leavings.py"  # and with what is left behind
NOT_ITS_OWN = (IMAGING, NETWORKING, LEAVINGS)


def policy() -> dict[str, list[dict[str, object]]]:
    text = (files("updraft.clouds.ec2") / "files" / "policy.json").read_text()
    found: dict[str, list[dict[str, object]]] = json.loads(text)
    return found


def test_the_page_shows_the_policy_that_ships() -> None:
    shown = re.search(r"```json\n(\{\n.*?\n\})\n```", (ROOT / "docs/howto/ec2.md").read_text(), re.DOTALL)
    assert shown
    assert json.loads(shown.group(1)) == policy()


def test_the_policy_lets_nothing_be_changed_without_the_pools_tag() -> None:
    for statement in policy()["Statement"]:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        if statement["Sid"] == "LaunchWithWhatAnInstanceIsMadeOf":
            assert not any("instance/" in one for one in statement["Resource"]), statement
        elif not all(re.match(r"ec2:Describe", action) for action in actions):
            assert "updraft:pool" in json.dumps(statement["Condition"]), statement


def test_the_policy_allows_every_call_that_the_driver_makes() -> None:
    folder = Path(str(files("updraft.clouds.ec2")))
    text = "".join(one.read_text() for one in folder.glob("*.py") if one.name not in NOT_ITS_OWN)
    calls = set(re.findall(r'"((?:describe|run|terminate|create|delete|get)_[a-z_]+)"', text))
    allowed = json.dumps(policy())
    elsewhere = {"describe_account_attributes", "describe_instance_attribute"}
    elsewhere |= {"create_key_pair", "delete_key_pair"}
    # Of Amazon's service nothing is asked that is for other endpoints, or for a person.
    missing = {call for call in calls - elsewhere if f"ec2:{call.title().replace('_', '')}" not in allowed}
    assert len(calls) > 10
    assert not missing


def test_the_page_of_images_names_every_call_that_takes_more_than_the_policy() -> None:
    text = (Path(str(files("updraft.clouds.ec2"))) / IMAGING).read_text()
    calls = {f"ec2:{call.title().replace('_', '')}" for call in re.findall(r'"([a-z]+_[a-z_]+)",? ?', text)}
    page, allowed = (ROOT / "docs/howto/images.md").read_text(), json.dumps(policy())
    wanted = {call for call in calls if re.match(r"ec2:(Create|Copy|De|Modify|Stop)", call)}
    assert len(wanted) > 5
    assert not {call for call in wanted if f"`{call}`" not in page and call not in allowed}


def test_the_page_of_networks_names_every_call_that_takes_more_than_the_policy() -> None:
    text = (Path(str(files("updraft.clouds.ec2"))) / NETWORKING).read_text()
    calls = set(re.findall(r'"((?:describe|create|delete|authorize|revoke)_[a-z_]+)"', text))
    page, allowed = (ROOT / "docs/howto/network.md").read_text(), json.dumps(policy())
    wanted = {call.title().replace("_", "") for call in calls}
    assert len(wanted) > 7
    assert not {call for call in wanted if f"{call}`" not in page and f"ec2:{call}" not in allowed}


def test_the_page_of_what_is_left_names_every_call_that_takes_more_than_the_policy() -> None:
    text = (Path(str(files("updraft.clouds.ec2"))) / LEAVINGS).read_text()
    calls = {call.title().replace("_", "") for call in re.findall(r'"((?:describe|delete)_[a-z_]+)"', text)}
    page, allowed = (ROOT / "docs/howto/stop-and-destroy.md").read_text(), json.dumps(policy())
    assert len(calls) > 3
    assert not {call for call in calls if f"`ec2:{call}`" not in page and f"ec2:{call}" not in allowed}


def test_the_price_table_says_where_it_is_from() -> None:
    table = shipped()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", table["date"])
    assert table["source"]
    assert table["currency"] == "USD per hour"
    assert table["regions"]["us-east-1"]["m5.large"] == 0.096
    assert all(price > 0 for prices in table["regions"].values() for price in prices.values())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"endpoint": "cloud.example.org"}, "endpoint: .* is not an address"),
        ({"endpoint": "https://me:secret@cloud.example.org/"}, "endpoint: .*holds a name or a password"),
        ({"tags": {"updraft:pool": "x"}}, "tags: .*not free"),
        ({"security_groups": ["sg-1", "web"]}, "security_groups: .*all by name"),
        ({"security_groups": "web", "subnets": {"a": "subnet-1"}}, "given by id"),
        ({"subnets": {"a": "subnet-1"}, "zones": ["b"]}, "there is none for zone b"),
        ({"regoin": "x"}, "regoin"),
        ({"timeout": 30}, "timeout: .*unit"),
        ({"secret_key": "hush"}, "secret_key"),
        ({"price_file": "/nonexistent.json"}, "price_file: .*can't be read"),
    ],
)
def test_wrong_settings_are_named_and_no_secret_is_repeated(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        made("ec2", "aws", "pool", settings)
    assert "secret@" not in str(raised.value)
    assert "hush" not in str(raised.value)


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_the_sdk_is_not_loaded_for_a_check_of_settings() -> None:
    code = "import sys, updraft.clouds.ec2; sys.exit('boto3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_workers_user_data_says_whose_it_is() -> None:
    attributes = {
        condor.ATTR_POOL: TAG_POOL,
        condor.ATTR_IDENTITY: TAG_IDENTITY,
        condor.ATTR_CLASS: TAG_CLASS,
        condor.ATTR_LAUNCH: TAG_LAUNCH,
        condor.ATTR_GENERATION: TAG_GENERATION,
        condor.ATTR_VARIANT: TAG_VARIANT,
    }
    assert attributes == ATTRIBUTES
    spec = WorkerSpec(
        pool="physics",
        identity="0123456789ab",
        collectors=("head.example.org",),
        trust_domain="example.org",
        uid_domain="example.org",
        token="not.a.token",  # noqa: S106
        worker_class="default",
        cloud="aws",
        zone="eu-west-1a",
        image="ami-1",
        flavor="t3.small",
        market="spot",
        launch_key="default-1-0",
        generation="abc",
        layers=(parse_layer("site", "#!/bin/sh\necho 'more than ASCII: ä'\n"),),
    )
    wanted = {TAG_POOL: "physics", TAG_CLASS: "default", TAG_LAUNCH: "default-1-0", TAG_GENERATION: "abc"}
    wanted[TAG_IDENTITY] = "0123456789ab"
    assert claims_in(worker_user_data(spec)) == wanted
    packed = replace(spec, cernvm=True)
    assert claims_in(worker_user_data(packed)) == wanted, "each part compressed by itself"
    assert claims_in(gzip.compress(b"nothing")) == claims_in(b"\x1f\x8bbroken") == {}
