"""What a local cloud can sell: what an order may ask for, quotas, the zones' room and addresses."""

import time
from collections.abc import Collection, Mapping
from typing import Any

from updraft.clouds.local.config import MARKETS, ROLES, USER_DATA_LIMIT, Flavor, LocalCloudConfig
from updraft.clouds.local.faults import FaultKind, Faults, What
from updraft.clouds.local.service.instance import ALIVE, TERMINATED, Machine, Order
from updraft.clouds.local.service.refusals import RefusedError


class Capacity:
    """What is left beside `machines`, which the cloud goes on to change. Callers hold the cloud's lock."""

    def __init__(self, config: LocalCloudConfig, machines: Mapping[str, Machine], faults: Faults) -> None:
        self.quotas = config.quotas
        self._config = config
        self._machines = machines
        self._faults = faults
        self._addresses = config.addresses()
        self._next_address = 0

    def offers(self) -> list[dict[str, Any]]:
        """Every flavor in every zone on every market that it is sold on, with its price and what is left."""
        return [
            {
                "zone": zone.name,
                "flavor": flavor.name,
                "market": market,
                "cpus": flavor.cpus,
                "memory": flavor.memory,
                "disk": flavor.disk,
                "gpus": flavor.gpus,
                "price": price,
                "left": None if zone.cores is None else self._zone_left(zone.name) // flavor.cpus,
            }
            for zone in self._config.zones
            for flavor in self._config.flavors
            for market, price in flavor.prices.items()
        ]

    def quota(self) -> dict[str, int | None]:
        """What is left of each quota, None where there is no such quota, and what is used of it."""
        quotas, (used, cores) = self.quotas, self._used()
        return {
            "machines": None if quotas.machines is None else max(0, quotas.machines - used),
            "cores": None if quotas.cores is None else max(0, quotas.cores - cores),
        } | {"used_machines": used, "used_cores": cores}

    def checked(self, order: Order, images: Collection[str]) -> Flavor:
        """The order's flavor, if this order could ever be carried out."""
        flavor = self._config.flavor(order.flavor)
        zones = [zone.name for zone in self._config.zones]
        if order.count < 1:
            raise RefusedError("bad-request", f"count is {order.count} and must be at least 1")
        if not order.key:
            raise RefusedError("bad-request", "a launch needs a key")
        if flavor is None:
            raise RefusedError("bad-request", f"there is no flavor {order.flavor!r}")
        for what, value, known in (
            ("image", order.image, images),
            ("zone", order.zone, zones),
            ("market", order.market, MARKETS),
            ("market for this flavor", order.market, flavor.prices),
            ("role", order.role, ROLES),
        ):
            if value not in known:
                raise RefusedError(
                    "bad-request", f"there is no {what} {value!r}; there is {', '.join(known)}"
                )
        if len(order.user_data) > USER_DATA_LIMIT:
            raise RefusedError(
                "bad-request", f"user-data is {len(order.user_data)} bytes; at most {USER_DATA_LIMIT} go"
            )
        return flavor

    def room(self, order: Order, flavor: Flavor) -> int:
        """How many of the machines asked for can be made now; refuses where it is none."""
        quota = self.quota()
        machines, cores = quota["machines"], quota["cores"]
        allowed = min(
            order.count,
            order.count if machines is None else machines,
            order.count if cores is None else cores // flavor.cpus,
        )
        if allowed < 1:
            raise RefusedError(
                "quota-exceeded", f"the project's quota leaves {machines} machines and {cores} cores"
            )
        now = time.time()
        fits = min(allowed, self._zone_left(order.zone) // flavor.cpus, len(self._free_addresses()))
        wanted = what(order)
        fits = sum(not self._faults.machine(FaultKind.NO_CAPACITY, wanted, now) for _ in range(fits))
        if fits < 1:
            raise RefusedError("no-capacity", f"{order.zone} has no room for {order.flavor} now")
        return fits

    def take_address(self, order: Order, now: float) -> str:
        """An address that no live machine has; on request the one that has just become free."""
        free = self._free_addresses()
        again = self._faults.machine(FaultKind.SAME_ADDRESS, what(order), now)
        address = next((one for one in self._left_last() if again and one in free), free[0])
        self._next_address = (self._addresses.index(address) + 1) % len(self._addresses)
        return address

    def _used(self) -> tuple[int, int]:
        alive = [machine for machine in self._machines.values() if machine.state in ALIVE]
        return len(alive), sum(machine.flavor.cpus for machine in alive)

    def _zone_left(self, name: str) -> int:
        cores = next(zone.cores for zone in self._config.zones if zone.name == name)
        if cores is None:
            return 1_000_000
        there = (m for m in self._machines.values() if m.order.zone == name and m.state in ALIVE)
        return max(0, cores - sum(machine.flavor.cpus for machine in there))

    def _free_addresses(self) -> list[str]:
        """Addresses that no live machine has, in turn: one that has just become free comes back late."""
        taken = {machine.address for machine in self._machines.values() if machine.state in ALIVE}
        turn = self._addresses[self._next_address :] + self._addresses[: self._next_address]
        return [address for address in turn if address not in taken]

    def _left_last(self) -> list[str]:
        """Addresses of ended machines, that of the latest end first."""
        ended = (m for m in self._machines.values() if TERMINATED in m.times)
        return [m.address for m in sorted(ended, key=lambda m: m.times[TERMINATED], reverse=True)]


def what(order: Order) -> What:
    """The order as faults look at it."""
    return What(order.image, order.flavor, order.zone, order.market)
