"""`annex` of those who can't write the ledger: the daemon is asked, and decides what they may."""

import os
from collections.abc import Mapping
from typing import Any

from updraft.app.call import Call
from updraft.cli.annexes.making import ALL, ME
from updraft.daemon.annex_requests.client import ask, place
from updraft.errors import UpdraftError, UsageError

Row = dict[str, Any]


def needed(call: Call) -> bool:
    """Whether who calls has to ask the daemon: others than root who can't write the pool's ledger.

    Where there is neither a configuration to read nor a daemon to ask, the first of the two is told of.
    """
    if os.geteuid() == 0:
        return False
    try:
        ledger = call.place.ledger
    except UpdraftError:
        return place().exists()
    return not any(os.access(one, os.W_OK) for one in (ledger, ledger.parent))


def create(said: Mapping[str, Any], *, dry_run: bool) -> Row:
    """What the daemon answers to a wish for an annex. Raises UsageError for what only an operator may ask."""
    for name in ("user_data", "tags", "security_groups"):
        if said[name]:
            option = name.replace("_", "-").removesuffix("s")
            raise UsageError(f"--{option} is for the pool's operator: ask for the annex without it")
    if said["owner"] != ME:
        what = "takes the jobs of all" if said["owner"] == ALL else "is for another user"
        raise UsageError(f"an annex that {what} is for the pool's operator to make")
    return ask(
        "create",
        name=said["name"],
        machines=said["machines"],
        cores=said["cores"],
        duration=said["duration"],
        idle=said["idle"],
        spot=said["spot"],
        max_price=said["max_price"],
        clouds=list(said["clouds"]) or None,
        flavors=list(said["flavors"]) or None,
        image=said["image"] or None,
        dry_run=dry_run or None,
        **({"class": said["worker_class"]} if said["worker_class"] else {}),
    )


def change(verb: str, name: str, **fields: Any) -> Row:
    """The annex as it is after `extend`, `stop` or `delete`."""
    row: Row = ask(verb, name=name, **fields)["annex"]
    return row


def rows(name: str | None = None) -> list[Row]:
    """The user's own annexes, or the one of this name."""
    found: list[Row] = (ask("status", name=name) if name else ask("list"))["annexes"]
    return found
