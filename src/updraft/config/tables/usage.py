"""What `updraft.toml` says of the records of what was used: [usage]. Nothing is decided by it."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from updraft.config.tables.part import Part

_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _currency(text: str) -> str:
    if text and not (len(text) == 3 and text.isascii() and text.isalpha() and text.isupper()):
        raise ValueError(f'"{text}" is no currency; write its three letters, as in "EUR"')
    return text


def _benchmark(text: str) -> str:
    if (
        not text
        or not text.isascii()
        or not text.isprintable()
        or any(sign in '/()"<>\\{} ' for sign in text)
    ):
        raise ValueError(f'"{text}" is no name of a benchmark; write it as in "hepscore23"')
    return text


class Energy(Part):
    """What the machines of one cloud take, where it isn't what [usage] says: [usage.clouds.NAME]."""

    watts_per_core: _Amount | None = None
    """Watts that one core takes, with its share of memory, disks and cooling."""
    co2_per_kwh: _Amount | None = None
    """Grams of CO₂ (or its equivalent) for each kWh of electricity there."""


class Usage(Part):
    """How what was used is recorded and told by `updraft usage`. Nothing is bought or ended by it."""

    currency: Annotated[str, AfterValidator(_currency)] = ""
    """The currency of all prices, in three letters: "EUR". Empty: not said, and the estimates have none."""
    idle_paid_by: Literal["users", "pool"] = "users"
    """Who is charged for cores that idled: "users" are those who used the machine that day, by their shares;
    "pool" is nobody of them. What nobody used on a day is the pool's in any case."""
    site: str = ""
    """What the site is called in APEL (SiteName) and AUDITOR. Empty: the pool's name."""
    benchmark: Annotated[str, AfterValidator(_benchmark)] = "hepscore23"
    """What `scores` are measured by: "hepscore23", "hepspec", "si2k", or the name of any other benchmark."""
    scores: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    """The benchmark of one core, by flavor, or by a pattern of flavors; the first that fits counts. A flavor
    that isn't here has none."""
    watts_per_core: _Amount | None = None
    """Watts that one core takes, with its share of memory, disks and cooling. Left out: no energy is told."""
    co2_per_kwh: _Amount | None = None
    """Grams of CO₂ (or its equivalent) for each kWh of electricity. Left out: no CO₂ is told."""
    clouds: Mapping[str, Energy] = Field(default_factory=dict)
    """What is different in one cloud: `watts_per_core` and `co2_per_kwh` in [usage.clouds.NAME]."""
