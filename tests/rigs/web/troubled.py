"""A pool with trouble, at 14:20 UTC of a day: what screenshots show.

Cloud uni doesn't answer, and six of its machines never joined; alice waits at her own cap, carol for a GPU
that nobody sells; at 14:05 machines were bought for bob; the month runs past its budget.
"""

import json
import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.rigs import ledgers
from tests.rigs.ledgers import HOUR
from updraft.core.model import Annex, MachineRecord, Reason, Resources
from updraft.core.reasons import held_back
from updraft.core.settings import DAY
from updraft.core.usage.days import day_of
from updraft.documents import Row, plain
from updraft.ledger import Ledger
from updraft.ledger.annexes import create

AT = datetime(2026, 11, 25, 14, 20, tzinfo=UTC).timestamp()
LAUNCHED = AT - 15 * 60.0
"""14:05."""
BOOTING = AT - 75.0
"""14:18:45, when more were."""
SILENT = Reason("unavailable", "identity.uni.example answers 503 Service Unavailable")
FLAVORS = {
    "aws": (("c5.2xlarge", 8, 0.34), ("c5.4xlarge", 16, 0.68)),
    "hpc": (("hpc.8", 8, 0.12),),
    "uni": (("m1.large", 8, 0.10),),
}
USERS = ("alice", "bob", "carol", "dave")
WAITING = {"alice": 412, "bob": 96, "carol": 18}
_SIZE = ledgers.Size(users=len(USERS), days=2)
_CONSOLE = (
    "[    2.1] cloud-init[412]: Cloud-init running 'init-local'\n[   61.4] cloud-init[433]: url_helper: "
)
_CONSOLE += "http://169.254.169.254 can't be reached: No route to host\n"


def troubled(path: Path) -> Path:
    """Write its ledger there; returns its path."""
    chance = random.Random(3)
    machines = list(_machines(chance))
    with Ledger(path) as ledger:
        ledger.remember(machines)
        busy = frozenset((one.cloud, one.id) for one in machines if one.last_claimed_at == AT)
        ledger.keep_at_work(busy, AT)
        ledger.note("controller", ledgers.controller(AT - 3), AT - 3)
        ledger.save_cycle(_cycle(machines, chance), AT - 3)
        for cloud in FLAVORS:
            ledger.note(
                f"offers {cloud}",
                {"at": AT - (2410 if cloud == "uni" else 40), "rows": list(_offers(cloud))},
                AT,
            )
        lease = Annex("beamtime", "dave", "worker", 10, 0, AT + 5.5 * HOUR, 600.0, since=AT - 3 * HOUR)
        create(ledger, lease, "root@head")
    rows = sqlite3.connect(path, isolation_level=None)
    rows.execute("BEGIN")
    _events(rows, machines)
    _used(rows, machines, chance)
    rows.executemany(
        "INSERT INTO consoles (cloud, machine, at, text) VALUES (?, ?, ?, ?)",
        [(one.cloud, one.id, one.ended_at, _CONSOLE) for one in machines if _failed(one)],
    )
    rows.execute("COMMIT")
    rows.close()
    return path


# ----------------------------------------------------------------------------------------------- machines


def _failed(one: MachineRecord) -> bool:
    return one.ended_at is not None and one.joined_at is None


def _machines(chance: random.Random) -> Iterator[MachineRecord]:
    number = 0
    for cloud, count in (("aws", 26), ("hpc", 18), ("uni", 6)):
        for _ in range(count):
            number += 1
            yield _machine(number, cloud, AT - chance.uniform(0.6, 7.0) * HOUR, chance)
    for _ in range(12):
        number += 1
        yield _machine(number, "aws", LAUNCHED + 4, chance)
    for _ in range(18):
        number += 1
        yield _machine(number, "aws", BOOTING + 3, chance, late=True)
    for back in range(14):
        number += 1
        asked = AT - (1.2 + back * 0.4) * HOUR
        yield _ended(_machine(number, ("aws", "hpc")[back % 2], asked, chance), idle=True)
    for back in range(6):
        number += 1
        yield _ended(_machine(number, "uni", AT - 1800.0 - 480.0 * back, chance), idle=False)


def _machine(
    number: int, cloud: str, asked: float, chance: random.Random, *, late: bool = False
) -> MachineRecord:
    flavor, cores, price = FLAVORS[cloud][number % len(FLAVORS[cloud])]
    if asked in (LAUNCHED + 4, BOOTING + 3):
        flavor, cores, price = FLAVORS["aws"][1]
    joined = None if late else asked + chance.uniform(55, 110)
    claimed = None if joined is None else AT if chance.random() < 0.9 else AT - chance.uniform(20, 200)
    return MachineRecord(
        id=f"{'i-0' if cloud == 'aws' else cloud + '-'}{number * 7919 + 4096:06x}",
        cloud=cloud, launch_key=f"worker-{int(asked) // 60:x}", worker_class="worker", flavor=flavor,
        generation="3fa9c1", requested_at=asked, resources=Resources(cores, cores * 4096, 10**8, 0),
        zone="eu-west-1a" if cloud == "aws" else "nova", market="spot" if cloud == "aws" else "on-demand",
        image="worker-2026-11", price=price, joined_at=joined, last_claimed_at=claimed,
    )  # fmt: skip


def _ended(one: MachineRecord, *, idle: bool) -> MachineRecord:
    from dataclasses import replace

    if idle:
        over = (one.joined_at or one.requested_at) + 2400.0
        return replace(
            one, last_claimed_at=over - 320, ended_at=over, end=Reason("idle-limit", "idle for 5m")
        )
    end = Reason("boot-deadline", "it didn't join within 10m")
    return replace(one, joined_at=None, last_claimed_at=None, ended_at=one.requested_at + 600.0, end=end)


# ------------------------------------------------------------------------------------------ the last cycle


def _cycle(machines: list[MachineRecord], chance: random.Random) -> dict[str, Any]:
    living = [one for one in machines if one.ended_at is None]
    found = ledgers.cycle(_SIZE, machines, AT, chance)
    cores = _cores(living)
    groups = list(_groups(sum(cores["alice"])))
    silent = {"state": "unknown", "since": AT - 2400, "last": AT - 2410, "error": plain(SILENT)}
    return found | {
        "at": AT - 3,
        "groups": groups,
        "jobs": {"idle": sum(one["idle"] for one in groups), "running": 331},
        "sources": found["sources"]
        | {f"cloud uni: {what}": silent for what in ("machines", "offers", "quota")},
        "cooldowns": [_rest()],
        "clouds": [_cloud(name, living) for name in FLAVORS],
        "classes": [found["classes"][0] | {"name": "worker", "max": 120, **ledgers._sums(living)}],
        "users": [_user(name, cores) for name in USERS],
        "limits": {"machines": 100, "cores": None, "cost_per_hour": 45.0, "memory": None},
        "spending": list(_budgets()),
    }  # fmt: skip


def _groups(most: int) -> Iterator[dict[str, Any]]:
    own = Reason("user-limit", f"alice has {most} cores, and may have {most}")
    gpu = Reason("no-offer", "no offer can run it")
    yield _group("alice", "48211.0", WAITING["alice"], 96.0, (1, 4096, 0), (0, 0, 0), own)
    yield _group("bob", "48230.0", WAITING["bob"], 14.2, (4, 16384, 0), (12, 72, 12), None)
    yield _group("carol", "48177.0", WAITING["carol"], 1330.0, (8, 65536, 1), (0, 0, 0), gpu)


def _group(
    owner: str, first: str, idle: int, minutes: float, asks: tuple[int, int, int], room: tuple[int, int, int],
    reason: Reason | None,
) -> dict[str, Any]:  # fmt: skip
    joined, coming, new = room
    cpus, memory, gpus = asks
    no_gpu = [
        {"offer": f"worker@{place}", "code": "clause", "text": "TARGET.GPUs >= 1: the slot has none"}
        for place in ("aws/eu-west-1a/c5.4xlarge/spot", "hpc/nova/hpc.8/on-demand")
    ]  # fmt: skip
    return {
        "key": f"{int(first[:-2]):016x}", "idle": idle, "joined": joined, "coming": coming, "new": new,
        "unmet": idle - joined - coming - new, "held_back": [plain(held_back(reason))] if reason else [],
        "refused": no_gpu if gpus else [], "schedd": "head.example", "owner": owner,
        "submitter": f"{owner}@example", "running": {"alice": 120, "bob": 31}.get(owner, 0),
        "oldest": AT - 60 * minutes, "priority": 0, "first_id": first, "evaluable": True,
        "request": {"cpus": cpus, "memory": memory, "disk": 10**6, "gpus": gpus},
    }  # fmt: skip


def _rest() -> Row:
    reason = {"code": "no-capacity", "text": "InsufficientInstanceCapacity in eu-west-1b"}
    key = "aws/eu-west-1b/c5.4xlarge/spot"
    return {"scope": "offer", "key": key, "until": AT + 340, "failures": 2, "probe": False, "reason": reason}


def _cloud(name: str, living: list[MachineRecord]) -> dict[str, Any]:
    found = ledgers._cloud(name, living, AT)
    found |= {
        "last_error": None,
        "limits": {"machines": 60, "cores": None, "memory": None, "cost_per_hour": None},
    }
    found |= {"quota_left": {"machines": 14, "cores": 112}, "foreign": {"machines": 5, "cores": 40}}
    if name == "uni":
        error = plain(SILENT)
        found |= {
            "state": "silent", "silent": {"since": AT - 2400, "last": AT - 2410, "reason": error},
            "last_error": {"at": AT - 12, **error}, "quota_left": {"machines": None, "cores": None},
            "foreign": {"machines": None, "cores": None},
        }  # fmt: skip
    return found


def _budgets() -> Iterator[dict[str, Any]]:
    month, day = datetime(2026, 12, 1, tzinfo=UTC).timestamp(), datetime(2026, 11, 26, tzinfo=UTC).timestamp()
    pool = ledgers._budget("the pool", "month", SPENT, AT) | {
        "most": BUDGET,
        "cost_per_hour": RATE,
        "ends": month,
    }
    yield pool | {"runs_out": AT + (BUDGET - SPENT) / RATE * HOUR}
    yield ledgers._budget("user bob", "month", 2850.98, AT) | {
        "most": 3800.0,
        "cost_per_hour": 6.1,
        "ends": month,
    }
    yield ledgers._budget("cloud aws", "day", 121.5, AT) | {"most": 500.0, "cost_per_hour": 18.4, "ends": day}


def _offers(cloud: str) -> Iterator[Row]:
    places = [("eu-west-1a", "spot"), ("eu-west-1b", "spot"), ("eu-west-1a", "on-demand")]
    for zone, market in places if cloud == "aws" else [("nova", "on-demand")]:
        for flavor, cores, price in FLAVORS[cloud]:
            yield {
                "flavor": flavor, "zone": zone, "market": market, "cpus": cores,
                "memory": cores * 4096, "gpus": 0,
                "price": price if market == "spot" or cloud != "aws" else round(price * 2.6, 4),
                "left": None if cloud == "aws" else 14, "classes": ["worker"],
            }  # fmt: skip


def _user(name: str, cores_of: dict[str, list[int]]) -> dict[str, Any]:
    cores = cores_of[name]
    most = sum(cores) if name == "alice" else None
    part = sum(cores) / sum(map(sum, cores_of.values()))
    return {
        "user": name, "cores": sum(cores), "waiting": WAITING.get(name, 0), "machines": len(cores),
        "max_cores": most, "max_machines": None, "part": part, "share": 0.25,
    }  # fmt: skip


def _cores(living: list[MachineRecord]) -> dict[str, list[int]]:
    """The cores that each user has of each machine, as `ledgers` has them claimed."""
    found: dict[str, list[int]] = {name: [] for name in USERS}
    for number, one in enumerate(living):
        if one.last_claimed_at == AT:
            found[USERS[number % len(USERS)]].append(one.resources.cpus // 2)
    return found


# ------------------------------------------------------------------------------------------------- events


def _events(rows: sqlite3.Connection, machines: list[MachineRecord]) -> None:
    found = [(AT - 3 * DAY, "standing", "", "acting", "this controller acts for the pool", {})]
    for one in machines:
        boot = 0.0 if one.joined_at is None else one.joined_at - one.requested_at
        if one.joined_at is not None:
            found.append(
                (
                    one.joined_at,
                    "joined",
                    one.id,
                    "joined",
                    f"in the pool {boot:.0f} s after it was asked for",
                    {},
                )
            )
        if one.end is not None and one.ended_at is not None:
            if one.joined_at is not None:
                found.append((one.ended_at - 15, "drain", one.id, "idle-limit", "idle for 5m", {}))
            found.append((one.ended_at, "gone", one.id, one.end.code, one.end.text, {}))
    offer = "worker@aws/eu-west-1a/c5.4xlarge/spot"
    detail = {"cloud": "aws", "offer": offer, "asked": 12}
    found.append(
        (LAUNCHED, "launch", "worker-6a5b21", "demand", "48 waiting jobs of bob have no room", detail)
    )
    more = {**detail, "asked": 18}
    found.append((BOOTING, "launch", "worker-6a5b2f", "demand", "72 waiting jobs of bob have no room", more))
    refused = {"cloud": "aws", "offer": "worker@aws/eu-west-1b/c5.4xlarge/spot", "asked": 4}
    text = "InsufficientInstanceCapacity in eu-west-1b"
    found.append((LAUNCHED - 9, "launch-refused", "worker-6a5b20", "no-capacity", text, refused))
    found.append((AT - 2400, "warning", "", "unavailable", f"cloud uni doesn't answer: {SILENT.text}", {}))
    rows.executemany(
        "INSERT INTO events (at, kind, subject, code, text, detail) VALUES (?, ?, ?, ?, ?, ?)",
        [(*one[:5], json.dumps(one[5])) for one in sorted(found, key=lambda one: one[0])],
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ what was used

SPENT, RATE, BUDGET = 6437.58, 36.42, 10500.0
"""What the month has cost so far, and what an hour costs now, as its budget has it."""


def _used(rows: sqlite3.Connection, machines: list[MachineRecord], chance: random.Random) -> None:
    ledgers._used(rows, _SIZE, machines, AT, chance)
    today = day_of(AT)
    rows.execute("DELETE FROM usage_places")
    rows.execute("DELETE FROM usage_people")
    for back in range(1, 60):
        _day(rows, today - back, chance)
    for number, name in enumerate(USERS):
        for table in ("usage_users", "usage_people"):
            words = f"UPDATE {table} SET user = ? WHERE user = ?"  # noqa: S608 (one of two names)
            rows.execute(words, (f"{name}@example", f"u{number:03d}@pool"))
        rows.execute(
            "UPDATE usage_meters SET doc = replace(doc, ?, ?)", (f"u{number:03d}@pool", f"{name}@example")
        )


def _day(rows: sqlite3.Connection, day: int, chance: random.Random) -> None:
    """The sums of a day that is over: fewer machines at weekends."""
    wave = (0.35 if day % 7 in (2, 3) else 1.0) * chance.uniform(0.75, 1.1)
    for cloud, scale in (("aws", 30.0), ("hpc", 20.0), ("uni", 14.0)):
        flavor, cores, price = FLAVORS[cloud][0]
        alive = wave * scale * DAY
        room, used = alive * cores, alive * cores * chance.uniform(0.78, 0.93)
        cost = alive / HOUR * price
        rows.execute(
            "INSERT INTO usage_places VALUES (?, ?, 'north', 'worker', ?, 'spot', '', '', 'EUR', ?, ?, ?, ?, "
            "0, 0, ?, 0, 0, 0, ?, 0, ?, 0, ?, 0)",
            (day, cloud, flavor, int(wave * scale * 3), alive, alive, used / cores, room, used, cost,
             int(wave * 400)),
        )  # fmt: skip
        for user, part in enumerate((0.31, 0.45, 0.09, 0.15)):
            rows.execute(
                "INSERT INTO usage_people VALUES (?, ?, 'physics', ?, 'north', 'worker', ?, 'spot', '', '', "
                "'EUR', 10, ?, 0, ?, 0, ?, ?, ?, 0)",
                (day, f"u{user:03d}@pool", cloud, flavor, used * part, int(wave * 400 * part),
                 (room - used) * part, cost * used / room * part, cost * (1 - used / room) * part),
            )  # fmt: skip
    rows.execute("INSERT OR REPLACE INTO usage_summed (day) VALUES (?)", (day,))
