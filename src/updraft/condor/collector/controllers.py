"""The ads by which controllers of one pool see each other. Runs in a child."""

import math

from updraft.condor.advalues import integer, real, text
from updraft.condor.base import ATTR_POOL, ControllerAd
from updraft.condor.collector.collectors import own_ads
from updraft.condor.collector.views import query_ad

_CONTROLLER = "IsUpdraftController"


def _controller_name(pool: str, controller: str) -> str:
    return f"updraft/{pool}/{controller}"


def read_controllers(collector: str | None, pool: str) -> tuple[ControllerAd, ...]:
    """All controllers of this pool whose ads are within their lifetime, by the collector's clock."""
    import classad2
    import htcondor2

    source = htcondor2.Collector(collector)
    constraint = f"{ATTR_POOL} == {classad2.quote(pool)} && {_CONTROLLER}"
    ads = source.query(htcondor2.AdType.Generic, constraint)
    now = max((integer(ad, "StatsLastUpdateTime") for ad in own_ads(source)), default=0)
    return tuple(
        ControllerAd(
            text(ad, "ControllerId"),
            text(ad, "Host"),
            real(ad, "Since"),
            real(ad, "LastHeardFrom"),
            text(ad, "PoolIdentity"),
        )
        for ad in ads
        if integer(ad, "LastHeardFrom") + integer(ad, "ClassAdLifetime") >= now
    )


def announce_controller(collector: str | None, pool: str, who: ControllerAd, lifetime: float) -> None:
    """Advertise `who` for `lifetime` seconds."""
    import classad2
    import htcondor2

    ad = classad2.ClassAd(
        {
            "MyType": "Generic",
            _CONTROLLER: True,
            "Name": _controller_name(pool, who.id),
            ATTR_POOL: pool,
            "ControllerId": who.id,
            "Host": who.host,
            "PoolIdentity": who.identity,
            "Since": who.since,
            "ClassAdLifetime": max(1, math.ceil(lifetime)),
        }
    )
    htcondor2.Collector(collector).advertise([ad], "UPDATE_AD_GENERIC")


def retract_controller(collector: str | None, pool: str, who: ControllerAd) -> None:
    """Withdraw the ad of `who`."""
    import classad2
    import htcondor2

    name = _controller_name(pool, who.id)
    ad = query_ad("Generic", f"Name == {classad2.quote(name)}", name)
    htcondor2.Collector(collector).advertise([ad], "INVALIDATE_ADS_GENERIC")
