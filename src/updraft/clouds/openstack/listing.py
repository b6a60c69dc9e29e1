"""Which machines there are: the servers with the pool's label, asked for by it, and its metadata as proof.

Nova lets a server's metadata be changed only once it is built. Tags written before are owed: every listing
shows them all the same, and they are written as soon as they can be.
"""

import contextlib
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from urllib.parse import quote

from updraft.clouds.base import TAG_LAUNCH, TAG_POOL, Found
from updraft.clouds.odd import NOTHING, Odd, readable
from updraft.clouds.openstack.client import COMPUTE, Connection
from updraft.clouds.openstack.editing import each, write_tags
from updraft.clouds.openstack.errors import Garbled, Refused
from updraft.clouds.openstack.reading import Raw, instance_of, is_settled, label, tags_of
from updraft.clouds.openstack.settings import Settings
from updraft.core.model import Instance
from updraft.errors import CloudError

Tags = Mapping[str, str | None]


class Listing:
    """The servers of one pool in one project."""

    def __init__(self, cloud: str, pool: str, connection: Connection, settings: Settings) -> None:
        self._cloud = cloud
        self._pool = pool
        self._connection = connection
        self._settings = settings
        self._lock = threading.Lock()
        self._owed: dict[str, dict[str, str | None]] = {}
        self.odd: Odd = NOTHING

    def look(self) -> tuple[Raw, ...]:
        """All servers of the pool, all pages, with their metadata as it is or is owed.

        Raises CloudError: a listing is whole or an error.
        """
        before = self._owing()
        with self._connection.translate("listing machines"):
            found = self._labelled(label(TAG_POOL, self._pool))
        after = self._owing()

        def read(raw: Raw) -> tuple[Raw, Raw]:
            # What was written while the listing was under way may not be in it.
            merged = _with(_with(raw, before), after)
            instance_of(merged, tags_of(merged), self._cloud)
            is_settled(raw)
            return raw, merged

        both, self.odd = readable(found, read, _id)
        self._pay([raw for raw, _ in both], before.keys() - self.odd.keys())
        return tuple(merged for _, merged in both if tags_of(merged).get(TAG_POOL) == self._pool)

    def by_id(self, ids: Iterable[str]) -> Found:
        """These servers, whatever their labels and metadata; None where Nova says that there is no such one.

        Nothing of one that Nova has and can't describe: the cell that has it is down. Such a one is shown as
        UNKNOWN with hardly anything else, before version 2.69 as an error 500. Raises CloudError.
        """
        found: dict[str, Instance | None] = {}

        def ask(one: str) -> None:
            try:
                raw = self._connection.get(COMPUTE, f"/servers/{quote(one, safe='')}").get("server") or {}
            except Refused as error:
                if error.status == 404 and one in error.message:  # Nova's own, and no proxy's
                    found[one] = None
                elif error.status != 500:
                    raise
                return
            if "metadata" in raw and str(raw.get("id")) == one:
                shown, _ = readable([raw], self._instance, _id)
                found.update((one, instance) for instance in shown)

        with self._connection.translate("looking up machines"):
            each(ask, ids)
        return found

    def _instance(self, raw: Raw) -> Instance:
        merged = _with(raw, self._owing())
        tags = tags_of(merged)
        shown = instance_of(merged, tags, self._cloud)
        return shown if tags.get(TAG_POOL) == self._pool else replace(shown, tagged=False)

    def building(self) -> tuple[Raw, ...]:
        """The pool's servers that are being built, as few others as the service leaves out. CloudError."""
        with self._connection.translate("listing machines"):
            return tuple(self._labelled(label(TAG_POOL, self._pool), status="BUILD"))

    def machines(self, looked: Iterable[Raw]) -> tuple[Instance, ...]:
        """These servers as instances."""
        return tuple(instance_of(raw, tags_of(raw), self._cloud) for raw in looked)

    def of_launch(self, key: str) -> tuple[Raw, ...]:
        """Those that were made by the launch of this key; errors are the SDK's."""
        found = self._labelled(label(TAG_POOL, self._pool), label(TAG_LAUNCH, key))
        return tuple(raw for raw in found if tags_of(raw).get(TAG_LAUNCH) == key)

    def owe(self, ids: Iterable[str], tags: Tags) -> None:
        """These tags couldn't be written yet."""
        with self._lock:
            for one in ids:
                self._owed.setdefault(one, {}).update(tags)

    def written(self, ids: Iterable[str], tags: Tags) -> None:
        """These tags were written: what was owed of the same names isn't any more."""
        with self._lock:
            for one in ids:
                owed = self._owed.get(one, {})
                left = {name: value for name, value in owed.items() if name not in tags}
                if owed and left:
                    self._owed[one] = left
                else:
                    self._owed.pop(one, None)

    # ------------------------------------------------------------------------------------------- inside

    def _labelled(self, *labels: str, **narrowed: str) -> list[Raw]:
        query = {"tags": ",".join(labels), **narrowed}  # all of them
        size = self._settings.page_size
        found: dict[object, Raw] = {}
        for raw in self._connection.pages(COMPUTE, "/servers/detail", "servers", query, size):
            if raw.get("status") == "UNKNOWN" and "metadata" not in raw:
                raise Garbled("a part of the cloud doesn't say which machines it has")
            found[str(raw["id"]) if raw.get("id") else len(found)] = raw
        return list(found.values())

    def _owing(self) -> dict[str, dict[str, str | None]]:
        with self._lock:
            return {one: dict(tags) for one, tags in self._owed.items()}

    def _pay(self, found: Iterable[Raw], before: Collection[str]) -> None:
        """Write what is owed to servers that take it now; forget what was owed to those that are gone."""
        by_id = {str(raw["id"]): raw for raw in found}
        with self._lock:
            for one in set(before) - set(by_id):
                self._owed.pop(one, None)
            owed = {one: dict(tags) for one, tags in self._owed.items() if one in by_id}
        due = {one: tags for one, tags in owed.items() if is_settled(by_id[one])}
        groups: dict[tuple[tuple[str, str | None], ...], list[str]] = {}
        for one, tags in due.items():
            groups.setdefault(tuple(tags.items()), []).append(one)
        for pairs, ids in groups.items():
            with contextlib.suppress(CloudError):  # it stays owed, and is shown as if it were written
                tags = dict(pairs)
                later = set(write_tags(self._connection, ids, tags))
                self.written((one for one in ids if one not in later), tags)


def _with(raw: Raw, owed: Mapping[str, Tags]) -> Raw:
    """The server as if what is owed to it were written."""
    tags = owed.get(str(raw["id"]))
    if tags is None:
        return raw
    metadata = {**tags_of(raw), **tags}
    return {**raw, "metadata": {name: value for name, value in metadata.items() if value is not None}}


def _id(raw: Raw) -> str:
    return str(raw["id"])
