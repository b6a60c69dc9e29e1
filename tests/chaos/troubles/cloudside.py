"""What a cloud does to its users."""

import time
from collections.abc import Callable
from contextlib import suppress

from tests.chaos.troubles.script import Happening
from tests.chaos.troubles.world import Does, End, World, drawn
from updraft.clouds.base import TAG_POOL
from updraft.clouds.local.config import MARKETS, default_zones
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.errors import CloudError

STATES = ("error", "stopped", "stopping", "pending", "terminated", "migrating")
HEAD = "$(getent ahostsv4 $(condor_config_val COLLECTOR_HOST | cut -d: -f1) | awk '{print $1; exit}')"


def a_fault(make: Callable[[Happening], Fault]) -> Does:
    """A happening that is one fault of the cloud, over by itself when its time is over."""

    def does(world: World, one: Happening) -> End | None:
        world.fault(make(one))
        world.note(one)
        return None

    return does


def _call(one: Happening) -> str:
    return drawn(one).choice(("run", "list", "terminate", "tag", "quota", "offers"))


def some_launches(kind: FaultKind, one: Happening) -> Fault:
    """Launches of one flavor, of one zone, on one market, or three in four of all."""
    narrowed = drawn(one).choice(
        (
            *({"flavor": flavor} for flavor in ("small", "medium")),
            *({"zone": zone.name} for zone in default_zones()),
            *({"market": market} for market in MARKETS),
        )
    )
    if drawn(one).random() < 0.25:
        return Fault(kind, call="run", chance=0.75, lasts=one.lasts)
    return Fault(kind, call="run", **narrowed, lasts=one.lasts)


def wrong_state(one: Happening) -> Fault:
    """Half of the machines are said to be in a state in which they aren't."""
    return Fault(FaultKind.WRONG_STATE, state=drawn(one).choice(STATES), chance=0.5, lasts=one.lasts)


FAULTS: dict[str, Callable[[Happening], Fault]] = {
    "calls-fail": lambda one: Fault(FaultKind.API_DOWN, lasts=one.lasts),
    "some-calls-fail": lambda one: Fault(FaultKind.API_DOWN, call=_call(one), chance=0.5, lasts=one.lasts),
    "some-launches-fail": lambda one: some_launches(FaultKind.API_DOWN, one),
    "credential-refused": lambda one: Fault(FaultKind.AUTH_FAILED, lasts=one.lasts),
    "throttled": lambda one: Fault(FaultKind.THROTTLED, seconds=1, lasts=one.lasts),
    "throttled-by-a-bucket": lambda one: Fault(
        FaultKind.THROTTLED, rate=0.7, burst=4, seconds=1, lasts=one.lasts
    ),
    "calls-slow": lambda one: Fault(FaultKind.API_SLOW, seconds=2, lasts=one.lasts),
    "no-answer": lambda one: Fault(
        FaultKind.NO_ANSWER, call=_call(one), seconds=4, chance=0.5, lasts=one.lasts
    ),
    "late-answer": lambda one: Fault(
        FaultKind.LATE_ANSWER, call=_call(one), seconds=6, chance=0.5, lasts=one.lasts
    ),
    "lost-answer": lambda one: Fault(FaultKind.LOST_ANSWER, call=_call(one), times=1, lasts=one.lasts),
    "no-capacity": lambda one: some_launches(FaultKind.NO_CAPACITY, one),
    "listing-leaves-out": lambda one: Fault(FaultKind.LEAVES_OUT, chance=0.5, lasts=one.lasts),
    "listing-lags": lambda one: Fault(FaultKind.LAGS, seconds=15, lasts=one.lasts),
    "listings-contradict": lambda one: Fault(FaultKind.LAGS, seconds=20, chance=0.5, lasts=one.lasts),
    "wrong-state": wrong_state,
    "never-boots": lambda one: Fault(FaultKind.NEVER_BOOTS, times=1, lasts=one.lasts),
    "boot-crashes": lambda one: Fault(FaultKind.BOOT_CRASHES, seconds=2, times=1, lasts=one.lasts),
    "boot-hangs": lambda one: Fault(FaultKind.BOOT_HANGS, seconds=2, times=1, lasts=one.lasts),
    "boot-late": lambda one: Fault(FaultKind.SLOW_BOOT, seconds=20, times=2, lasts=one.lasts),
    "no-user-data": lambda one: Fault(FaultKind.NO_USER_DATA, times=1, lasts=one.lasts),
    "address-again": lambda one: Fault(FaultKind.SAME_ADDRESS, lasts=one.lasts),
}


def tag_removed(world: World, one: Happening) -> End | None:
    """Somebody takes the pool's tag from a machine, and puts it back."""
    machine = world.victim(one)
    if machine is None:
        return None
    tags = next(row["tags"] for row in world.client.machines() if row["id"] == machine)
    world.note(one, machine=machine)
    # A call that fails may have been done, by the cloud's own faults: it is put back in any case.
    with suppress(CloudError):
        world.client.tag([machine], {TAG_POOL: None})
    return lambda: world.client.tag([machine], {TAG_POOL: tags[TAG_POOL]})


def ended_by_somebody(world: World, one: Happening) -> End | None:
    """Somebody ends a machine by hand, in the cloud's console."""
    if (machine := world.victim(one)) is not None:
        world.note(one, machine=machine)
        world.client.terminate([machine])
    return None


def crashed(world: World, one: Happening) -> End | None:
    """A machine's host dies."""
    if (machine := world.victim(one)) is not None:
        world.note(one, machine=machine)
        world.client.crash(machine)
    return None


def system_dead(world: World, one: Happening) -> End | None:
    """All processes of a machine stand still, for good, and its kernel is silent; its cloud shows it running.

    A kernel that still acknowledges what it is sent would keep the job's lease alive, whatever hangs.
    """
    if (machine := world.victim(one)) is not None:
        world.note(one, machine=machine)
        world.in_machine(machine, "ip rule add pref 5 blackhole; kill -STOP -1")
    return None


def cut(what: str) -> Does:
    """A machine reaches `what` no more for a while; "" is everything."""

    def does(world: World, one: Happening) -> End | None:
        machine = world.victim(one)
        if machine is None:
            return None
        world.note(one, machine=machine)
        to = f"to {what}" if what else ""
        world.in_machine(machine, f"ip rule add pref 5 {to} blackhole")

        def mended() -> None:
            world.mend_machine(machine, "ip rule del pref 5 || :")
            world.befallen(machine, time.time())

        return mended

    return does


def noticed(seconds: float) -> Does:
    """A machine's capacity is taken back, after so many seconds."""

    def does(world: World, one: Happening) -> End | None:
        if (machine := world.victim(one)) is not None:
            world.note(one, machine=machine)
            world.client.notice(machine, seconds=seconds)
        return None

    return does


DEEDS: dict[str, Does] = {
    **{name: a_fault(make) for name, make in FAULTS.items()},
    "tag-removed": tag_removed,
    "ended-by-somebody": ended_by_somebody,
    "crashed": crashed,
    "system-dead": system_dead,
    "cut-from-head": cut(HEAD),
    "cut-from-metadata": cut("169.254.169.254"),
    "cut-from-everything": cut(""),
    "notice-of-120-s": noticed(120),
    "notice-of-40-s": noticed(40),
    "taken-without-notice": noticed(0),
}
