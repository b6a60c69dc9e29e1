"""Ending and tagging many instances with few calls, where some of them may be gone already."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from botocore.exceptions import ClientError

from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.errors import code_of, is_missing, message_of

BATCH = 500
# One such instance fails the call for all that were named with it.
_ONE_OF_THEM = ("OperationNotPermitted", "IncorrectInstanceState", "UnsupportedOperation")

Act = Callable[[list[str]], object]


def terminate(connection: Connection, ids: Iterable[str]) -> list[str]:
    """End these instances; one that is gone is success. Returns those that aren't there.

    Raises CloudError.
    """

    def act(some: list[str]) -> object:
        return connection.ask("terminate_instances", InstanceIds=some)

    with connection.translate("ending machines"):
        return [one for batch in batches(ids) for one in on_existing(act, batch)]


def write_tags(connection: Connection, ids: Iterable[str], tags: Mapping[str, str | None]) -> list[str]:
    """Write these tags, None removes one; an instance that is gone is success.

    Returns those that aren't there. Raises CloudError.
    """
    named = list(dict.fromkeys(ids))
    new = [{"Key": name, "Value": value} for name, value in tags.items() if value is not None]
    old = [{"Key": name} for name, value in tags.items() if value is None]
    missing: list[str] = []
    with connection.translate("tagging machines"):
        for action, chosen in (("create_tags", new), ("delete_tags", old)):
            if chosen:
                for batch in batches(named):
                    missing += on_existing(_tagging(connection, action, chosen), batch)
    return missing


def batches(ids: Iterable[str], size: int = BATCH) -> Iterator[list[str]]:
    """Each id once, in lists of at most `size`."""
    named = list(dict.fromkeys(ids))
    return (named[at : at + size] for at in range(0, len(named), size))


def _tagging(connection: Connection, action: str, tags: Sequence[Mapping[str, str]]) -> Act:
    return lambda some: connection.ask(action, Resources=some, Tags=tags)


def on_existing(act: Act, batch: list[str]) -> list[str]:
    """Do it to those that are there: a call that names one that isn't does nothing to the others.

    Returns those that aren't.
    """
    left = batch
    while left:
        try:
            act(left)
        except ClientError as error:
            if is_missing(error):
                named = set(re.findall(r"[A-Za-z0-9-]+", message_of(error)))
                fewer = [one for one in left if one not in named]
                if len(fewer) < len(left):
                    left = fewer
                    continue
            elif code_of(error) not in _ONE_OF_THEM or len(left) == 1:
                raise
            done = _one_by_one(act, left)
            return [one for one in batch if one not in done]
        break
    return [one for one in batch if one not in left]


def _one_by_one(act: Act, ids: Iterable[str]) -> set[str]:
    """Each by itself; the first refusal is raised once all others have been done. Returns those done."""
    refusal: ClientError | None = None
    done: set[str] = set()
    for one in ids:
        try:
            act([one])
            done.add(one)
        except ClientError as error:
            if not is_missing(error):
                refusal = refusal or error
    if refusal is not None:
        raise refusal
    return done
