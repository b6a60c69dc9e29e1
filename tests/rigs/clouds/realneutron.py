"""The network service of a real project, past any driver."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keystoneauth1.adapter import Adapter

from tests.rigs.clouds.realcloud import Project


class Neutron:
    """What it says, as it says it."""

    def __init__(self, project: Project) -> None:
        region = project.region
        self._adapter = Adapter(
            region.get_session(),
            service_type="network",
            region_name=region.get_region_name(),
            interface=region.get_interface(),
            min_version="2.0",
            max_version="2.latest",
        )

    def listed(self, what: str, **filters: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self._adapter.get(f"/{what}", params=filters).json()[
            what.replace("-", "_")
        ]
        return found

    def of_pool(self, what: str, pool: str) -> list[Mapping[str, Any]]:
        """Those whose description begins as that of what this pool's updraft makes."""
        mark = f"updraft:pool={pool}"
        return [one for one in self.listed(what) if one["description"].split(" ")[0] == mark]

    def made(self, what: str, **asked: Any) -> dict[str, Any]:
        one = what.removesuffix("s")
        found: dict[str, Any] = self._adapter.post(f"/{what}", json={one: asked}).json()[one]
        return found

    def gone(self, what: str, one: str) -> None:
        self._adapter.delete(f"/{what}/{one}")

    @contextmanager
    def network(self, name: str, *subnets: str, mode: str = "slaac") -> Iterator[dict[str, Any]]:
        """A network of the project with these subnets, those of IPv6 in this mode."""
        network = self.made("networks", name=name)
        try:
            for cidr in subnets:
                family = 6 if ":" in cidr else 4
                modes = {"ipv6_address_mode": mode, "ipv6_ra_mode": mode} if family == 6 else {}
                self.made("subnets", network_id=network["id"], cidr=cidr, ip_version=family, **modes)
            yield network
        finally:
            self.gone("networks", network["id"])
