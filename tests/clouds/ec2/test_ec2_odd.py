"""What the EC2 driver makes of rows of its catalogue of which nothing can be made: each costs itself."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, cast

import pytest

from updraft.clouds.ec2.capabilities import Capabilities
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.images import Images
from updraft.clouds.ec2.offers import Offers
from updraft.clouds.ec2.prices import Prices
from updraft.clouds.ec2.settings import Settings

ZONE, OTHER = "eu-west-1a", "eu-west-1b"


def kind(name: str, cpus: object = 2, memory: object = 4096, **more: object) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": cpus},
        "MemoryInfo": {"SizeInMiB": memory},
        **more,
    }


def spot(name: str, price: object, **more: object) -> dict[str, Any]:
    return {"AvailabilityZone": ZONE, "InstanceType": name, "SpotPrice": price, **more}


class Told:
    """A connection whose endpoint tells these rows."""

    amazon, region = False, "eu-west-1"

    def __init__(self, **rows: list[dict[str, Any]]) -> None:
        self.rows = {
            "AvailabilityZones": [{"ZoneName": ZONE}],
            "InstanceTypes": [kind("t3.small")],
            "InstanceTypeOfferings": [{"Location": ZONE, "InstanceType": "t3.small"}],
            "SpotPriceHistory": [spot("t3.small", "0.01")],
            "Images": [],
        }
        for name, more in rows.items():
            self.rows[name] = [*more, *self.rows[name]]

    def ask(self, _call: str, **_: object) -> Mapping[str, Any]:
        return {"AvailabilityZones": self.rows["AvailabilityZones"]}

    def pages(self, _call: str, what: str, **_: object) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows[what])

    def translate(self, _what: str) -> AbstractContextManager[None]:
        return nullcontext()


def offers(**rows: list[dict[str, Any]]) -> Offers:
    settings = Settings.model_validate({"region": "eu-west-1"})
    connection = cast(Connection, Told(**rows))
    return Offers("here", settings, connection, Capabilities(), Prices("here", settings, connection))


def sold(made: Offers) -> set[tuple[str, str, str, float | None]]:
    return {(one.zone, one.flavor, one.market, one.price) for one in made.all()}


SANE = {(ZONE, "t3.small", "on-demand", None), (ZONE, "t3.small", "spot", 0.01)}


@pytest.mark.parametrize("number", ["many", float("nan"), float("inf"), -1, None, 1.5, True, 10**30])
@pytest.mark.parametrize("which", ["cpus", "memory"])
def test_a_type_with_a_number_that_is_none_is_left_out_and_named(number: object, which: str) -> None:
    made = offers(InstanceTypes=[kind("odd", **{which: number})])
    for _ in range(2):
        assert sold(made) == SANE
        assert list(made.odd) == ["odd"]


def test_rows_that_say_too_little_are_left_out_and_named() -> None:
    made = offers(
        AvailabilityZones=[{"State": "available"}],
        InstanceTypes=[{"InstanceType": "short"}, kind("odd", GpuInfo={"Gpus": [{"Count": "x"}]}), {}],
        InstanceTypeOfferings=[{"Location": OTHER}],
        SpotPriceHistory=[{"AvailabilityZone": ZONE}],
    )
    assert sold(made) == SANE
    assert set(made.odd) == {
        "one without an id",
        "short",
        "odd",
        f"something in {OTHER}",
        f"something's spot price in {ZONE}",
    }


@pytest.mark.parametrize("price", ["dear", "nan", "inf", "-1", None, [], ""])
def test_a_spot_price_that_is_none_is_left_out_and_named(price: object) -> None:
    made = offers(SpotPriceHistory=[spot("t3.small", price, Timestamp=datetime(2026, 1, 1))])
    assert sold(made) == SANE
    assert list(made.odd) == [f"t3.small's spot price in {ZONE}"]


def test_times_of_prices_with_and_without_a_zone_are_compared() -> None:
    made = offers(SpotPriceHistory=[spot("t3.small", "0.02", Timestamp=datetime(2026, 1, 1))])
    assert (ZONE, "t3.small", "spot", 0.02) in sold(made)
    assert not made.odd


def test_what_nobody_wants_is_not_looked_at() -> None:
    made = offers(InstanceTypes=[kind("arm", None, ProcessorInfo={"SupportedArchitectures": ["riscv"]})])
    assert sold(made) == SANE
    assert not made.odd


@pytest.mark.parametrize("row", [{}, {"Name": "no id"}, {"ImageId": None, "Name": None}])
def test_an_image_that_nobody_can_name_costs_itself(row: dict[str, Any]) -> None:
    told = Told(Images=[row, {"ImageId": "ami-12345678"}])
    images = Images("here", Settings.model_validate({"region": "eu-west-1"}), cast(Connection, told))
    assert [(one.id, one.name) for one in images.all()] == [("ami-12345678", "")]


@pytest.mark.parametrize("row", [{"Name": "mine"}, {"Name": "mine", "ImageId": None}])
def test_an_image_without_an_id_is_not_what_a_name_means(row: dict[str, Any]) -> None:
    told = Told(Images=[row, {"ImageId": "ami-12345678", "Name": "mine"}])
    images = Images("here", Settings.model_validate({"region": "eu-west-1"}), cast(Connection, told))
    assert images.resolve("mine") == "ami-12345678"
    alone = Images(
        "here", Settings.model_validate({"region": "eu-west-1"}), cast(Connection, Told(Images=[row]))
    )
    assert alone.find("mine") is None
