"""What updraft has made in the clouds, judged: found in all of them at the same time, and removed."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from updraft.app import wiring
from updraft.app.clouds import named_clouds, network_of
from updraft.checks.asking import ask
from updraft.config.model import Settings
from updraft.core.leftovers import Belonging, Judged, Kind, KnownSite, LeftoverState, judged
from updraft.core.model import Reason
from updraft.documents import Document
from updraft.errors import CloudError, LedgerError, ProblemFound
from updraft.ledger.made import forget_made, made
from updraft.ledger.reader import Reader
from updraft.provision.heads.machines import heads_pool
from updraft.provision.images.making import pool_name
from updraft.provision.leftovers import Place

_LOOK = 60.0
REMEDY = "`updraft leftovers` lists it, `updraft leftovers --remove` removes it"


class LeftoverRow(Document):
    """A thing in a cloud."""

    cloud: Annotated[str, "Its cloud."]
    kind: Annotated[Kind, "What it is."]
    id: Annotated[str, "The cloud's name for it."]
    name: Annotated[str, "Its name, empty where it has none."]
    made: Annotated[float | None, "When it was made."]
    fate: Annotated[
        LeftoverState,
        "left: --remove removes it; unused: only where its id is given; kept: in use, named, or young; "
        "refused: it isn't proven to be this pool's.",
    ]
    reason: Reason
    removed: Annotated[bool, "This call has removed it."]
    error: Annotated[str, "Why it couldn't be removed, else empty."]


class Unanswered(Document):
    """A question without an answer."""

    cloud: Annotated[str, "Whom."]
    what: Annotated[str, "What it was asked for."]
    text: Annotated[str, "What it said."]


class Leftovers(Document):
    """What updraft has made in the clouds, and what is left over of it."""

    leftovers: Annotated[Sequence[LeftoverRow], "By cloud, kind and id; what is kept only with --all."]
    errors: Annotated[Sequence[Unanswered], "What isn't known."]


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found, and by cloud and what was asked the errors in place of an answer."""

    found: tuple[Judged, ...]
    errors: Mapping[tuple[str, str], str] = field(default_factory=dict)


def look(settings: Settings, clouds: Sequence[str] = (), deadline: float = _LOOK) -> Looked:
    """What updraft has made in these clouds, or all, each judged; a question that fails costs itself."""
    names = named_clouds(settings, clouds)
    places = _places(settings, names)
    questions: dict[str, Callable[[], Any]] = {
        f"{name}\0{what}": put for name in names for what, put in places[name].questions().items()
    }
    questions |= {f"{name}\0the images that classes name": places[name].named for name in names}
    answers = ask(questions, deadline)
    errors = {
        (cloud, what): " ".join(str(answer.error).split())
        for key, answer in answers.items()
        if answer.error is not None
        for cloud, _, what in [key.partition("\0")]
    }
    things: list[Belonging] = []
    named: dict[tuple[str, str], str] = {}
    for key, answer in answers.items():
        cloud = key.partition("\0")[0]
        if isinstance(answer.value, Mapping):
            named |= answer.value
        # Where it isn't known what the configuration names, nothing of that cloud is known to be unused.
        elif answer.value is not None and (cloud, "the images that classes name") not in errors:
            things += answer.value
    return Looked(judged(things, _site(settings, named)), errors)


def remove(settings: Settings, going: Sequence[Judged]) -> dict[tuple[str, str, str], str]:
    """Remove each; by its key what went wrong, "" where it is gone. One that fails costs itself."""
    places = _places(settings, sorted({one.thing.cloud for one in going}))
    done: dict[tuple[str, str, str], str] = {}
    for one in sorted(going, key=lambda one: _ORDER.index(one.thing.kind)):
        thing = one.thing
        try:
            places[thing.cloud].remove(thing, [other.thing for other in going])
            if thing.kind is Kind.KEY_PAIR:
                forget_made(settings.pool.ledger, *thing.key)
            done[thing.key] = ""
        except (CloudError, LedgerError) as error:
            done[thing.key] = " ".join(str(error).split())
    return done


# Machines first: they use the others. Snapshots go with their images, or after them.
_ORDER = (
    Kind.MACHINE, Kind.IMAGE, Kind.SNAPSHOT, Kind.VOLUME, Kind.ADDRESS, Kind.PORT, Kind.GROUP, Kind.KEY_PAIR,
)  # fmt: skip


def _places(settings: Settings, clouds: Sequence[str]) -> dict[str, Place]:
    pool, noted = settings.pool.name, _noted(settings)
    found = {}
    for name in clouds:
        workers, heads, builders = (
            wiring.make_cloud(
                settings.model_copy(update={"pool": settings.pool.model_copy(update={"name": own})}),
                name,
                settings.clouds[name],
            )
            for own in (pool, heads_pool(pool), pool_name(pool))
        )
        network = network_of(settings, name)
        keys = frozenset(one for cloud, kind, one in noted if cloud == name and kind == Kind.KEY_PAIR)
        groups = None if isinstance(network, str) else network
        found[name] = Place(settings, name, workers, heads, builders, groups, keys)
    return found


def _noted(settings: Settings) -> frozenset[tuple[str, str, str]]:
    if not settings.pool.ledger.exists():
        return frozenset()
    with Reader(settings.pool.ledger) as reader:
        return made(reader)


def _site(settings: Settings, named: Mapping[tuple[str, str], str]) -> KnownSite:
    return KnownSite(settings.pool.name, wiring.identity(settings), time.time(), _noted(settings), named)


def still(going: Sequence[Judged], found: Sequence[Judged]) -> tuple[Judged, ...]:
    """Those that may go as well after a person has thought about it: another may use one by now."""
    now = {one.thing.key: one.fate for one in found}
    return tuple(one for one in going if now.get(one.thing.key) is one.fate)


def called(one: Judged) -> str:
    """What it is called in a sentence."""
    thing = one.thing
    name = f"{thing.name} ({thing.id})" if thing.name not in ("", thing.id) else thing.id
    return f"{thing.kind} {name} in {thing.cloud}"


def found_within(settings: Settings, deadline: float = 6.0) -> tuple[Judged, ...]:
    """What was found, for `check`. Raises ProblemFound where a cloud didn't tell all."""
    looked = look(settings, (), deadline)
    if looked.errors:
        silent = ", ".join(f"{what} in {cloud}" for cloud, what in looked.errors)
        raise ProblemFound(f"not known: {silent}")
    return looked.found


def left_over(settings: Settings) -> str:
    """A sentence on what else of the pool's is in the clouds; what isn't known is said."""
    looked = look(settings)
    said = [
        called(one)
        for one in looked.found
        if one.fate in (LeftoverState.LEFT, LeftoverState.UNUSED, LeftoverState.REFUSED)
    ]
    said += [f"perhaps {what} in {cloud}, which doesn't answer" for cloud, what in looked.errors]
    if not said:
        return "nothing else that updraft made is left in the clouds"
    return f"left in the clouds: {'; '.join(said)}; {REMEDY}"
