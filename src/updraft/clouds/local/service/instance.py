"""A machine as the cloud remembers it: what was asked for, its states, and what is said of it."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from updraft.clouds.local.config import Flavor, host_name
from updraft.clouds.local.service.machine import Console, Process

PENDING, RUNNING, STOPPING, TERMINATED = "pending", "running", "stopping", "terminated"
ALIVE = (PENDING, RUNNING, STOPPING)
STATES = (*ALIVE, TERMINATED)


@dataclass(frozen=True, slots=True)
class Order:
    """What one run call asks for. `role` "controller" gives the machines the API's credential."""

    key: str
    count: int
    image: str
    flavor: str
    zone: str
    market: str = "on-demand"
    user_data: bytes = b""
    tags: Mapping[str, str] = field(default_factory=dict)
    role: str = ""


@dataclass(slots=True)
class Machine:
    """One machine as the cloud remembers it; `times` says when it entered each state."""

    id: str
    order: Order
    flavor: Flavor
    address: str
    tags: dict[str, str]
    state: str = PENDING
    times: dict[str, float] = field(default_factory=dict)
    why_ended: str = ""
    notice_at: float | None = None
    console: Console = field(default_factory=Console)
    process: Process | None = None
    stop_now: threading.Event = field(default_factory=threading.Event)
    has_user_data: bool = True
    wants_token: bool = False

    def state_at(self, then: float) -> str:
        """The state that it had at a time; "" before it was asked for."""
        return max(
            ((at, STATES.index(state), state) for state, at in self.times.items() if at <= then),
            default=(0.0, 0, ""),
        )[2]

    def show(self, state: str = "") -> dict[str, Any]:
        """The machine as an answer of the API, in its own state or in this one."""
        order = self.order
        return {
            "id": self.id,
            "state": state or self.state,
            "times": dict(self.times),
            "key": order.key,
            "image": order.image,
            "flavor": order.flavor,
            "zone": order.zone,
            "market": order.market,
            "role": order.role,
            "address": self.address,
            "name": host_name(self.address),
            "tags": dict(self.tags),
            "why_ended": self.why_ended,
            "pid": self.process.inside if self.process and self.state != TERMINATED else None,
        }
