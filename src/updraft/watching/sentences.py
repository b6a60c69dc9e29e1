"""What is known of a pool, in sentences: the same at a terminal and on the page.

Rows are those of `documents` and `annexes`.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from updraft.watching.known import START
from updraft.watching.words import ago, clock, count, megabytes

Row = Mapping[str, Any]
NO_OFFER = "no-offer"  # the reason that says nothing without what the offers have against the jobs


def of_most(number: float | None, most: float | None) -> str:
    """How much of how much: "3/10", or "3" where there is no end."""
    if number is None:
        return "–" if most is None else f"–/{most:.4g}"
    return f"{number:.4g}" if most is None else f"{number:.4g}/{most:.4g}"


def memory_of(look: Row, most: int | None) -> str:
    """Memory of how much of it. A look of before it was counted has none."""
    has = "–" if look.get("memory") is None else megabytes(look["memory"])
    return has if most is None else f"{has}/{megabytes(most)}"


def state_words(row: Row, disabled: object, now: float) -> str:
    """A cloud's state: disabled, silent, resting, what machines it doesn't end, since when; or "ok"."""
    parts = []
    if disabled is not None:
        parts.append("leaving" if row.get("leaving") else "disabled")
    if row.get("silent"):
        parts.append(f"silent for {ago(now - row['silent']['since'])}")
    rest = row.get("rest")
    if rest:
        parts.append(f"resting until {clock(rest['until'])}" if rest["until"] > now else "probing")
    failing = row.get("not_ending")
    if failing:
        end = "doesn't end" if failing["machines"] == 1 else "don't end"
        parts.append(f"{count(failing['machines'], 'machine')} {end} for {ago(now - failing['since'])}")
    return ", ".join(parts) or "ok"


def cost_words(machines: int, cost: float, unknown: int) -> str:
    """What machines cost per hour, of which some have a price that isn't known: unknown is not zero."""
    if machines and unknown >= machines:
        return "price unknown"
    return f"{cost:.4g} per hour" + (f", not counting {unknown} of unknown price" if unknown else "")


def cloud_line(clouds: Sequence[Row], now: float) -> str:
    """All clouds in a line: those that are well by number, the others by name."""
    odd = [
        f"{row['name']} {state_words(row, row['disabled'], now)}" for row in clouds if row["state"] != "ok"
    ]
    well = len(clouds) - len(odd)
    return "; ".join([f"{count(well, 'cloud')} ok", *odd] if well or not odd else odd)


def asked_for(group: Row) -> str:
    """How many jobs of a group wait, and what each asks for."""
    request = group["request"]
    asks = f"{count(request['cpus'], 'cpu')}, {megabytes(request['memory'])} of memory"
    more = [count(request["gpus"], "GPU")] if request["gpus"] else []
    more += [f"{amount} {name}" for name, amount in request.get("custom", ())]
    return f"{group['idle']} waiting, each asking for {', '.join([asks, *more])}"


def room_found(group: Row) -> str:
    """What room there is for the jobs of a group, and for how many there is none."""
    return (
        f"{group['joined']} find room on machines of the pool, {group['coming']} on machines on "
        f"their way, {group['new']} on machines to be launched now, and {group['unmet']} find none"
    )


def why_waiting(group: Mapping[str, Any]) -> list[str]:
    """Why jobs of a group that find no room get none: what holds back, and what offers have against them."""
    if not group["unmet"]:
        return []
    held_back = [reason["text"] for reason in group["held_back"]]
    if held_back and all(reason["code"] != NO_OFFER for reason in group["held_back"]):
        return held_back
    refused = list(dict.fromkeys(reason["text"] for reason in group["refused"]))
    return held_back + refused[: 1 if held_back else 2]


def daemon_line(daemon: Row) -> str:
    """Whether a daemon is at work, how old its look is, and why it doesn't act."""
    if daemon["looked_at"] is None:
        return f"no daemon has looked at this pool yet; {START}"
    host = f" on {daemon['host']}" if daemon["host"] else ""
    if not daemon["alive"]:
        return f"no daemon is at work{host}: this was seen {ago(daemon['age'])} ago; {START}"
    looked = f"the daemon{host} looked {ago(daemon['age'])} ago"
    if not daemon["acting"] and daemon["standing"]:
        return f"{looked}; it doesn't act: {daemon['standing']['text']}"
    return looked


def size(row: Row) -> str:
    """What there is of what is wanted, on its way included; of one that is ended nothing is wanted."""
    look: Row = row["look"] or {"machines": 0, "cores": 0}
    unit, there, wanted = "", look["machines"], row["machines"] - row["left"]
    if not row["machines"]:
        unit, there, wanted = " cores", look["cores"], row["cores"] - row["left_cores"]
    return f"{there}{unit}" if row["stopped"] else f"{there}/{wanted}{unit}"


def stands(row: Row) -> str:
    """How it stands and why. What was asked for since the last look is known before the next."""
    look, stopped = row["look"], row["stopped"]
    if stopped and (look is None or look["state"] not in ("leaving", "over")):
        return f"leaving: {stopped['text']}"
    return "the daemon hasn't looked yet" if look is None else f"{look['state']}: {look['reason']['text']}"


def lease(row: Row) -> str:
    """When its lease ends, on the clock and from now."""
    left = row["until"] - time.time()
    return f"{clock(row['until'])} ({'in ' + ago(left) if left > 0 else 'over'})"
