"""A ledger as a daemon leaves it, of any size: machines, jobs that wait, events, and what was used."""

import json
import random
import socket
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from updraft.core.model import Annex, MachineRecord, Reason, Resources
from updraft.core.model.used import InPool, MachineFacts, Meter, Sighting, UserClaim
from updraft.core.reasons import held_back
from updraft.core.settings import DAY
from updraft.core.usage.days import day_of
from updraft.documents import plain
from updraft.ledger import Ledger
from updraft.ledger.annexes import create
from updraft.ledger.usage import _meter_to_doc
from updraft.ledger.usage_sums import sum_up

HOUR = 3600.0
CLOUDS = ("aws", "hpc", "uni")
FLAVORS = (("c5.4xlarge", 16, 0.68), ("m5.2xlarge", 8, 0.384), ("g.large", 32, 1.9), ("s.small", 4, None))
CLASSES = ("default", "gpu", "highmem")
REASONS = (
    Reason("limit-cost", "the pool may cost 900 per hour, and costs 899.3"),
    Reason("quota", "cloud uni has no cores left in its quota"),
    Reason("cooling-down", "hpc/z1/s.small/on-demand rests until 14:20:00 after 3 failures"),
    Reason("no-offer", "no offer can run it"),
    Reason("in-turn", "more machines are bought as those on their way join"),
    Reason("user-limit", "u012 has 400 cores, and may have 400"),
)
KINDS = (
    ("launch", "launch-accepted", "12 jobs wait, and this is the cheapest that runs them"),
    ("joined", "joined", "it joined 84s after it was asked for"),
    ("drain", "idle-limit", "idle for 5m0s"),
    ("gone", "idle-limit", "it was idle, and is gone"),
    ("failed", "no-capacity", "InsufficientInstanceCapacity"),
    ("warning", "stranger", "a slot advertises itself that no machine of ours explains"),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    machines: int = 40
    jobs: int = 600
    groups: int = 20
    users: int = 8
    days: int = 10
    events: int = 200


SMALL = Size()
LARGE = Size(machines=5000, jobs=100_000, groups=500, users=120, days=366, events=50_000)


def made(path: Path, size: Size = SMALL, now: float = 1_795_000_000.0, seed: int = 7) -> Path:
    """Write such a ledger there, as of `now`; returns its path."""
    chance = random.Random(seed)
    with Ledger(path) as ledger:
        machines = list(_machines(size, now, chance))
        ledger.remember(machines)
        ledger.keep_at_work(
            frozenset((one.cloud, one.id) for one in machines if one.last_claimed_at == now), now
        )
        ledger.note("controller", controller(now), now)
        ledger.save_cycle(cycle(size, machines, now, chance), now)
        create(
            ledger,
            Annex("night", _user(3), "default", 40, 0, now + 5 * HOUR, 600.0, since=now - HOUR),
            "root@head",
        )
    rows = sqlite3.connect(path, isolation_level=None)
    rows.execute("BEGIN")
    _events(rows, size, machines, now, chance)
    _used(rows, size, machines, now, chance)
    failed = next(one for one in machines if one.end is not None and one.joined_at is None)
    rows.execute(
        "INSERT INTO consoles (cloud, machine, at, text) VALUES (?, ?, ?, ?)",
        (failed.cloud, failed.id, now, "[  1.2] cloud-init: booting\n[ 60.0] cloud-init: no route to head\n"),
    )
    rows.execute("COMMIT")
    rows.close()
    return path


def controller(now: float) -> dict[str, Any]:
    """The daemon's note of itself; it runs as this process."""
    import os

    return {
        "pid": os.getpid(),
        "host": socket.getfqdn(),
        "started": now - DAY,
        "last_cycle": now,
        "acting": True,
    }


def _user(number: int) -> str:
    return f"u{number:03d}"


def _machines(size: Size, now: float, chance: random.Random) -> Iterator[MachineRecord]:
    for number in range(size.machines + max(2, size.machines // 5)):
        flavor, cores, price = chance.choice(FLAVORS)
        asked = now - chance.expovariate(1 / (3 * HOUR)) - 5.0
        ended = number >= size.machines
        failed = (ended and number % 4 == 0) or number == size.machines
        boot = chance.uniform(40, 180)
        joined = None if failed or (not ended and now - asked < boot) else asked + boot
        end = None
        if ended:
            end = (
                Reason("boot-deadline", "it didn't join within 10m")
                if failed
                else Reason("idle-limit", "idle for 5m")
            )
            asked -= HOUR
            joined = None if joined is None else joined - HOUR
        yield MachineRecord(
            id=f"i-{number:08x}",
            cloud=chance.choice(CLOUDS),
            launch_key=f"demo-{number // 8:06d}",
            worker_class=chance.choice(CLASSES),
            flavor=flavor,
            generation="3fa9c1",
            requested_at=asked,
            resources=Resources(cores, cores * 4096, 10**8, 0),
            zone=chance.choice(("z1", "z2")),
            market=chance.choice(("on-demand", "spot")),
            image="worker-2026-11",
            price=price,
            joined_at=joined,
            last_claimed_at=None
            if joined is None
            else (now if chance.random() < 0.8 else chance.uniform(joined, now)),
            ended_at=(joined or asked) + 1200.0 if ended else None,
            end=end,
        )


def cycle(size: Size, machines: list[MachineRecord], now: float, chance: random.Random) -> dict[str, Any]:
    """What the daemon notes of its last cycle."""
    living = [one for one in machines if one.ended_at is None]
    groups = list(_groups(size, now, chance))
    outlooks = [_outlook(one, now) for one in living]
    return {
        "version": 1,
        "at": now,
        "pool": "demo",
        "acting": True,
        "standing": None,
        "configuration": 1,
        "timings": {},
        "sources": {"schedd head": {"state": "known", "at": now}, "collector": {"state": "known", "at": now}},
        "jobs": {"idle": sum(one["idle"] for one in groups), "running": 8 * len(living)},
        "phases": {},
        "groups": groups,
        "machines": outlooks,
        "cooldowns": [
            {
                "scope": "offer",
                "key": "hpc/z1/s.small/on-demand",
                "until": now + 600,
                "failures": 3,
                "probe": False,
                "reason": {"code": "no-capacity", "text": "no capacity in z1"},
            }
        ],
        "annexes": [],
        "warnings": [],
        "actions": [],
        "spending": [_budget("the pool", "day", 950.0, now), _budget("cloud aws", "month", None, now)],
        "clouds": [_cloud(name, living, now) for name in CLOUDS],
        "classes": [_class(name, living) for name in CLASSES],
        "users": [_standing(number, size, chance) for number in range(size.users)],
        "limits": {"machines": 6000, "cores": None, "cost_per_hour": 900.0, "memory": None},
    }


def _groups(size: Size, now: float, chance: random.Random) -> Iterator[dict[str, Any]]:
    for number in range(size.groups):
        idle = max(1, size.jobs // size.groups)
        unmet = idle // 2 if number % 4 else 0
        reason = REASONS[number % len(REASONS)]
        refused = [
            {"offer": "aws/z1/m5.2xlarge/spot", "code": "clause", "text": "TARGET.HasGPU: the slot has none"}
        ]
        user = _user(number % size.users)
        yield {
            "key": f"{number:016x}",
            "idle": idle,
            "joined": idle // 8,
            "coming": idle // 4,
            "new": idle - unmet - idle // 8 - idle // 4,
            "unmet": unmet,
            "held_back": [plain(held_back(reason))] if unmet else [],
            "refused": refused * (12 if reason.code == "no-offer" and unmet else 0),
            "schedd": "head",
            "owner": user,
            "submitter": f"{user}@pool",
            "running": chance.randrange(200),
            "oldest": now - chance.expovariate(1 / (2 * HOUR)),
            "priority": 0,
            "first_id": f"{1000 + 10 * number}.0",
            "evaluable": True,
            "request": {"cpus": chance.choice((1, 1, 4)), "memory": 2048, "disk": 10**6, "gpus": 0},
        }


def _outlook(record: MachineRecord, now: float) -> dict[str, Any]:
    if record.joined_at is None:
        reason = {"code": "booting", "text": "it boots"}
    elif record.last_claimed_at == now:
        reason = {"code": "busy", "text": "it has work"}
    else:
        reason = {"code": "idle", "text": "it is idle, and other jobs may come"}
    phase = "booting" if record.joined_at is None else "joined"
    return {
        "machine": record.id,
        "cloud": record.cloud,
        "phase": phase,
        "reason": reason,
        "deadline": now + DAY,
    }


def _cloud(name: str, living: list[MachineRecord], now: float) -> dict[str, Any]:
    mine = [one for one in living if one.cloud == name]
    failed = {"at": now - 400, "code": "no-capacity", "text": "InsufficientInstanceCapacity in z1"}
    return {
        "name": name,
        "state": "ok",
        "silent": None,
        "not_ending": None,
        "disabled": None,
        "disabled_at": None,
        "leaving": False,
        "rest": None,
        "priority": 0,
        **_sums(mine),
        "limits": {"machines": 2500, "cores": None, "memory": None, "cost_per_hour": 800.0},
        "last_error": failed if name == "hpc" else None,
        "quota_left": {"machines": 100, "cores": None},
        "foreign": {"machines": 3, "cores": None},
    }


def _budget(whose: str, period: str, spent: float | None, now: float) -> dict[str, Any]:
    scope, _, name = whose.removeprefix("the ").partition(" ")
    return {
        "scope": scope,
        "name": name,
        "whose": whose,
        "period": period,
        "most": 1000.0,
        "spent": spent,
        "cost_per_hour": 12.5,
        "over": False,
        "ends": now + 7200.0,
        "runs_out": None,
        "waiting": 0,
    }


def _class(name: str, living: list[MachineRecord]) -> dict[str, Any]:
    mine = [one for one in living if one.worker_class == name]
    return {"name": name, **_sums(mine), "min": 0, "max": 3000, "max_cores": None, "waiting": 10}


def _sums(mine: list[MachineRecord]) -> dict[str, Any]:
    joined = sum(one.joined_at is not None for one in mine)
    return {
        "machines": len(mine),
        "cores": sum(one.resources.cpus for one in mine),
        "memory": sum(one.resources.memory for one in mine),
        "cost_per_hour": round(sum(one.price or 0.0 for one in mine), 6),
        "unknown_prices": sum(one.price is None for one in mine),
        "phases": {"booting": len(mine) - joined, "joined": joined},
    }


def _standing(number: int, size: Size, chance: random.Random) -> dict[str, Any]:
    return {
        "user": _user(number),
        "cores": chance.randrange(400),
        "waiting": chance.randrange(1000),
        "machines": chance.randrange(50),
        "max_cores": 400 if number % 3 else None,
        "max_machines": None,
        "part": 1 / size.users,
        "share": 1 / size.users,
    }


def _events(
    rows: sqlite3.Connection, size: Size, machines: list[MachineRecord], now: float, chance: random.Random
) -> None:
    found = []
    for number in range(size.events):
        kind, code, text = KINDS[number % len(KINDS)]
        subject = "" if kind == "warning" else chance.choice(machines).id
        at = now - 20.0 * (size.events - number)
        found.append((at, kind, subject, code, text, json.dumps({})))
    rows.executemany(
        "INSERT INTO events (at, kind, subject, code, text, detail) VALUES (?, ?, ?, ?, ?, ?)", found
    )


# ------------------------------------------------------------------------------------------- what was used


def _used(
    rows: sqlite3.Connection, size: Size, machines: list[MachineRecord], now: float, chance: random.Random
) -> None:
    """Today and yesterday as records, with the meters; the days before as their sums."""
    today = day_of(now)
    living = [one for one in machines if one.ended_at is None]
    for number, one in enumerate(living):
        facts = _facts(one)
        rows.execute(
            "INSERT INTO usage_machines VALUES (?, ?, ?, '', ?, ?, ?, ?, ?, ?, '', '', ?, ?, 0, ?)",
            (number, one.cloud, one.id, "north", one.zone, one.flavor, one.market, one.image,
             one.worker_class, one.resources.cpus, one.resources.memory, one.requested_at),
        )  # fmt: skip
        claim = UserClaim(
            f"{_user(number % size.users)}@pool", "physics", max(1, facts.cores // 2), 0, now - 60
        )
        pool = InPool(
            one.joined_at is not None, (claim,) if one.last_claimed_at == now else (), 3, facts.begin
        )
        meter = Meter(Sighting(facts, True, pool), now, pool)
        rows.execute("INSERT INTO usage_meters VALUES (?, ?, ?)", (one.cloud, one.id, _meter_to_doc(meter)))
    for day in (today - 1, today):
        _records_of(rows, size, living, day, now)
    sum_up(rows, today - 1, over=True)
    for back in range(2, size.days):
        _sums_of(rows, size, today - back, chance)
    rows.execute(
        "INSERT OR REPLACE INTO notes (key, at, doc) VALUES ('usage-at', ?, ?)",
        (now, json.dumps({"at": now})),
    )


def _facts(one: MachineRecord) -> MachineFacts:
    return MachineFacts(
        "demo", one.cloud, one.id, "north", one.zone, one.flavor, one.market, one.image, one.worker_class, "",
        "", one.resources.cpus, one.resources.memory, 0, one.requested_at, one.price, "EUR", "cloud",
        "hepscore23", None,
    )  # fmt: skip


def _records_of(
    rows: sqlite3.Connection, size: Size, living: list[MachineRecord], day: int, now: float
) -> None:
    for number, one in enumerate(living):
        alive = min(6 * HOUR, max(60.0, now - day * DAY))
        cores = one.resources.cpus
        cost = alive / HOUR * (one.price or 0.0)
        rows.execute(
            "INSERT INTO usage_days VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, ?, 0, ?, ?, ?, 0, ?, 'EUR', 'cloud', "
            "'', NULL, '', '')",
            (day, number, day * DAY, day * DAY + alive, alive, alive, alive * 0.8, cores * alive * 0.7, cost,
             alive if one.price is None else 0.0, 12, one.price),
        )  # fmt: skip
        for more in range(3):
            user = f"{_user((number + more) % size.users)}@pool"
            rows.execute(
                "INSERT OR IGNORE INTO usage_users VALUES (?, ?, ?, 'physics', ?, 0, 4, 0)",
                (day, number, user, cores * alive * 0.7 / 3),
            )


def _sums_of(rows: sqlite3.Connection, size: Size, day: int, chance: random.Random) -> None:
    wave = (0.6 + 0.4 * chance.random()) * size.machines
    for cloud in CLOUDS:
        for flavor, cores, price in FLAVORS:
            share = wave / (len(CLOUDS) * len(FLAVORS)) * DAY
            room, used = share * cores, share * cores * chance.uniform(0.6, 0.95)
            cost = share / HOUR * (price or 0.0)
            rows.execute(
                "INSERT INTO usage_places VALUES (?, ?, 'north', 'default', ?, 'spot', '', '', 'EUR', ?, ?, "
                "?, ?, 0, 0, ?, 0, 0, 0, ?, 0, ?, ?, 100, 0)",
                (day, cloud, flavor, int(wave), share, share, used / cores, room, used, cost,
                 0.0 if price is not None else share),
            )  # fmt: skip
            rows.executemany(
                "INSERT INTO usage_people VALUES (?, ?, 'physics', ?, 'north', 'default', ?, 'spot', '', '', "
                "'EUR', 10, ?, 0, 10, 0, ?, ?, ?, 0)",
                [
                    (day, f"{_user(user)}@pool", cloud, flavor, used / size.users, (room - used) / size.users,
                     cost * used / room / size.users, cost * (1 - used / room) / size.users)
                    for user in range(size.users)
                ],
            )  # fmt: skip
    rows.execute("INSERT INTO usage_summed (day) VALUES (?)", (day,))
