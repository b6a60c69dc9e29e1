"""Which machines there are. Amazon is asked for those with the pool's tag; others for all, and sorted here.

Of an endpoint that may not take tags at launch, an instance without any of our tags is looked into: its
user-data says whose it is, and then it is tagged.
"""

import base64
import binascii
import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import ClientError

from updraft.clouds.base import TAG_LAUNCH, TAG_POOL, Found
from updraft.clouds.ec2.capabilities import Capabilities
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.editing import batches, on_existing, terminate, write_tags
from updraft.clouds.ec2.reading import claims_in, counts, instance_of, state_of, tags_of
from updraft.clouds.ec2.settings import OURS, Settings
from updraft.clouds.odd import NOTHING, Odd, readable
from updraft.core.model import CloudState, Instance
from updraft.errors import CloudError

TAG_DISOWNED = "updraft:disowned"
MOVING = (CloudState.PENDING, CloudState.STOPPING)
SHOWN_AFTER = 300.0  # by then a machine that was made is listed, or never will be


@dataclass(frozen=True, slots=True)
class Look:
    """One listing: the pool's instances with their tags, and how many there are of everybody's.

    `odd` are those of which nothing can be made, whoever's they are: they count.
    """

    ours: tuple[tuple[Mapping[str, Any], Mapping[str, str]], ...]
    counted: int
    odd: Odd = field(default_factory=dict)


class Listing:
    """The instances of one pool at one endpoint."""

    def __init__(
        self,
        cloud: str,
        pool: str,
        connection: Connection,
        known: Capabilities,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cloud = cloud
        self._pool = pool
        self._connection = connection
        self._known = known
        self._settings = settings
        self._lock = threading.Lock()
        self._owed: dict[str, dict[str, str]] = {}
        self.tends = True
        self._strangers: set[str] = set()
        self._clock = clock
        self._unseen: dict[str, float] = {}
        self._to_end: set[str] = set()
        self._changes = 0
        self._counted: tuple[float, int] | None = None
        self.odd: Odd = NOTHING

    def look(self) -> Look:
        """Everything, all pages. Raises CloudError: a listing is whole or an error."""
        with self._connection.translate("listing machines"):
            found = self._described()
        read, odd = readable(found, self._read, _id)
        ours = [(raw, tags) for raw, tags in read if tags.get(TAG_POOL) == self._pool]
        with self._lock:
            listed = {*odd, *(raw["InstanceId"] for raw, _ in read)}
            self._strangers &= listed
            since = self._clock() - SHOWN_AFTER
            self._unseen = {one: at for one, at in self._unseen.items() if one not in listed and at > since}
            unseen = len(self._unseen)
        self._pay([raw["InstanceId"] for raw, _ in ours])
        return Look(tuple(ours), sum(counts(raw) for raw, _ in read) + len(odd) + unseen, odd)

    def by_id(self, ids: Iterable[str]) -> Found:
        """These instances, whatever their tags; None where the endpoint says that there is no such id.

        Raises CloudError.
        """
        described: dict[str, Instance] = {}

        def describe(some: list[str]) -> None:
            answer = self._connection.ask("describe_instances", InstanceIds=some)
            raws = [one for group in answer.get("Reservations", ()) for one in group.get("Instances", ())]
            shown, _ = readable(raws, self._instance, _id)
            described.update({one.id: one for one in shown})

        with self._connection.translate("looking up machines"):
            missing = [one for batch in batches(ids) for one in on_existing(describe, batch)]
        return {**dict.fromkeys(missing), **described}

    def _read(self, raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """The instance with its tags; raises where nothing can be made of it."""
        tags = self._tags(raw)
        instance_of(raw, tags, self._cloud)
        return raw, tags

    def _instance(self, raw: Mapping[str, Any]) -> Instance:
        tags = self._tags(raw)
        shown = instance_of(raw, tags, self._cloud)
        return shown if tags.get(TAG_POOL) == self._pool else replace(shown, tagged=False)

    def _tags(self, raw: Mapping[str, Any]) -> Mapping[str, str]:
        """Its tags; of one without ours those that it should have, as far as anything proves it."""
        tags = tags_of(raw)
        return tags if TAG_POOL in tags else tags | self._proven(raw, tags)

    def counted(self) -> int:
        """How many machines count against the quota, everybody's: by the last `machines()` while it serves.

        It serves until the next would be due at the pool's pace, and half as long again, unless something of
        ours was on its way up or down in it, or was launched or ended after it was begun.
        """
        with self._lock:
            known = self._counted
            if known is not None:
                pages = max(1, -(-known[1] // self._settings.page_size))
                if self._clock() - known[0] < self._settings.listing_every * pages * 1.5:
                    return known[1]
        return self.look().counted

    def changed(self) -> None:
        """Something was launched or ended, or may have been: no listing begun before it tells the number."""
        with self._lock:
            self._changes += 1
            self._counted = None

    def machines(self) -> tuple[Instance, ...]:
        """The pool's instances."""
        with self._lock:
            before, begun = self._changes, self._clock()
        look = self.look()
        found = tuple(instance_of(raw, tags, self._cloud) for raw, tags in look.ours)
        self.odd = look.odd
        with self._lock:
            still = before == self._changes and not any(one.state in MOVING for one in found)
            self._counted = (begun, look.counted) if still else None
        return found

    def of_launch(self, key: str, token: str) -> tuple[Instance, ...]:
        """Those that were made by the launch of this key."""
        return tuple(
            instance_of(raw, tags, self._cloud)
            for raw, tags in self.look().ours
            if tags.get(TAG_LAUNCH) == key or raw.get("ClientToken") == token
        )

    def of_token(self, token: str) -> list[Mapping[str, Any]]:
        """What stands of the call with this client token, with tags or without; errors are the SDK's."""
        return [raw for raw in self._described() if raw.get("ClientToken") == token and counts(raw)]

    def made(self, ids: Iterable[str]) -> None:
        """These were just made: they count, and may be wanted to end, before they are listed."""
        with self._lock:
            self._unseen.update(dict.fromkeys(ids, self._clock()))

    def end_when_seen(self, ids: Iterable[str]) -> None:
        """These were to end and the endpoint didn't know them: those just made are ended once it does."""
        with self._lock:
            self._to_end.update(one for one in ids if one in self._unseen)

    def owe(self, ids: Iterable[str], tags: Mapping[str, str]) -> None:
        """These are ours and couldn't be tagged yet: that is tried again at each look."""
        with self._lock:
            self._owed.update({one: dict(tags) for one in ids})

    # ------------------------------------------------------------------------------------------- inside

    def _described(self) -> list[Mapping[str, Any]]:
        parameters: dict[str, Any] = {}
        if self._connection.amazon:
            parameters["Filters"] = [{"Name": f"tag:{TAG_POOL}", "Values": [self._pool]}]
        if self._known.may("paging"):
            parameters["MaxResults"] = self._settings.page_size
        try:
            pages = self._connection.pages("describe_instances", "Reservations", **parameters)
            return [one for reservation in pages for one in reservation.get("Instances", ())]
        except ClientError as error:
            if "MaxResults" in parameters and self._known.refused(error, ("paging",)):
                return self._described()
            raise

    def _proven(self, raw: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, str]:
        """The tags that an instance without ours should have, as far as anything proves it."""
        one = raw["InstanceId"]
        with self._lock:
            owed = self._owed.get(one)
            skip = one in self._strangers or len(self._strangers) >= 10_000
        if owed is not None:
            return owed
        if (
            skip
            or self._known.has("tag-on-create")
            or any(name.startswith(OURS) for name in tags)
            or state_of(raw) not in (CloudState.PENDING, CloudState.RUNNING, CloudState.STOPPED)
        ):
            return {}
        claims = self._claims(one)
        if claims.get(TAG_POOL) != self._pool:
            with self._lock:
                self._strangers.add(one)
            return {}
        self.owe([one], claims)
        return claims

    def _claims(self, one: str) -> dict[str, str]:
        try:
            answer = self._connection.ask("describe_instance_attribute", InstanceId=one, Attribute="userData")
        except ClientError:  # not allowed, not known, or gone: nothing is proven
            return {}
        text = answer.get("UserData", {}).get("Value", "") or ""
        try:
            return claims_in(base64.b64decode(text))
        except (binascii.Error, ValueError):
            return {}

    def _pay(self, present: Collection[str]) -> None:
        """Do what couldn't be done yet to instances that are there now: end them, or write their tags."""
        if not self.tends:
            return
        with self._lock:
            ends = [one for one in present if one in self._to_end]
            due = {one: self._owed[one] for one in present if one in self._owed}
        if ends:
            with contextlib.suppress(CloudError):  # tried again at the next look
                terminate(self._connection, ends)
                with self._lock:
                    self._to_end.difference_update(ends)
        groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for one, tags in due.items():
            groups.setdefault(tuple(sorted(tags.items())), []).append(one)
        for pairs, ids in groups.items():
            with contextlib.suppress(CloudError):  # it stays owed, and the machines count as ours meanwhile
                missing = write_tags(self._connection, ids, dict(pairs))
                with self._lock:
                    for one in set(ids) - set(missing):
                        self._owed.pop(one, None)


def _id(raw: Mapping[str, Any]) -> str:
    return str(raw["InstanceId"])
