"""Ending and tagging many servers, a few at a time: Nova has no call for more than one.

More at once would be slower: each takes database connections that everybody's calls need.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from updraft.clouds.base import TAG_POOL
from updraft.clouds.openstack.client import COMPUTE, Connection
from updraft.clouds.openstack.errors import Refused, kind_of
from updraft.clouds.openstack.reading import label
from updraft.errors import CloudUnavailable, Throttled

AT_ONCE = 4
_LEAVING = re.compile(r"task_state (soft-)?deleting|vm_state (deleted|soft-delete)", re.IGNORECASE)
_UNSETTLED = re.compile(r"(vm_state|task_state) \w+", re.IGNORECASE)

Act = Callable[[str], object]


def terminate(connection: Connection, ids: Iterable[str]) -> None:
    """End these servers; one that is gone is success. Raises CloudError, once all others have been ended."""

    def end(one: str) -> None:
        _delete(connection, f"/servers/{quote(one, safe='')}")

    with connection.translate("ending machines"):
        each(end, ids)


def write_tags(connection: Connection, ids: Iterable[str], tags: Mapping[str, str | None]) -> list[str]:
    """Write these tags, None removes one; a server that is gone is success.

    Returns those of which Nova won't change anything yet: they are still being built. Raises CloudError.
    """
    unsettled: list[str] = []

    def write(one: str) -> None:
        try:
            if_there(lambda: _written(connection, quote(one, safe=""), tags))
        except Refused as error:
            if error.status != 409 or not _UNSETTLED.search(error.message):
                raise
            if not _LEAVING.search(error.message):
                unsettled.append(one)

    with connection.translate("tagging machines"):
        each(write, ids)
    return unsettled


def each(act: Act, ids: Iterable[str]) -> None:
    """Do it to each once. The first error is raised at the end; no more is begun once the cloud is ill."""
    named = list(dict.fromkeys(ids))
    ill: list[Exception] = []
    errors: list[Exception] = []

    def one(which: str) -> None:
        if ill:
            return
        try:
            act(which)
        except Exception as error:
            errors.append(error)
            if not isinstance(error, Refused) or issubclass(kind_of(error), CloudUnavailable | Throttled):
                ill.append(error)

    if len(named) == 1:
        one(named[0])
    elif named:
        with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
            list(threads.map(one, named))
    if errors:
        raise (ill or errors)[0]


def _written(connection: Connection, one: str, tags: Mapping[str, str | None]) -> None:
    """The metadata, and the label by which the pool's servers are listed: ours only with both."""
    new = {name: value for name, value in tags.items() if value is not None}
    if new:
        connection.act(COMPUTE, "POST", f"/servers/{one}/metadata", {"metadata": new})
    for name, value in tags.items():
        if value is None:
            address = f"/servers/{one}/metadata/{quote(name, safe='')}"
            if name == TAG_POOL:  # its label says which pool's it was
                _unlabelled(connection, one)
            _delete(connection, address)
    if TAG_POOL in new:
        where = f"/servers/{one}/tags/{quote(label(TAG_POOL, new[TAG_POOL]), safe='')}"
        connection.act(COMPUTE, "PUT", where)


def _unlabelled(connection: Connection, one: str) -> None:
    # Its tags by themselves are "not found" for as long as no part of the cloud has taken it.
    server = connection.get(COMPUTE, f"/servers/{one}").get("server") or {}
    for name in server.get("tags") or ():
        if str(name).startswith((f"{TAG_POOL}=", f"{TAG_POOL}#")):
            where = f"/servers/{one}/tags/{quote(str(name), safe='')}"
            _delete(connection, where)


def _delete(connection: Connection, address: str) -> None:
    if_there(lambda: connection.act(COMPUTE, "DELETE", address))


def if_there(act: Callable[[], object]) -> None:
    """Do it; what isn't there is success."""
    try:
        act()
    except Refused as error:
        if error.status != 404:
            raise
