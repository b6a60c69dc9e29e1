"""Worker images of a base image and layers, or of a running machine, for `image build` and `image make`."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from pwd import getpwall
from secrets import token_hex

from updraft.app import wiring
from updraft.app.images.places import place_of
from updraft.bootstrap.images.baking import ATTR_TRIAL, baking_layer
from updraft.bootstrap.layers import parse_layer
from updraft.bootstrap.worker.userdata import worker_user_data
from updraft.clouds.base import LaunchRequest, Machines
from updraft.clouds.imaging import TAG_FROM, MachineImage
from updraft.condor.pool import HTCondorPool
from updraft.condor.support.trial import USUAL, Trial
from updraft.config.model import Settings
from updraft.core.model import Launch, Offer, Reason, Resources
from updraft.core.slots.choice import chosen
from updraft.errors import UsageError
from updraft.provision.images.builder import LIFETIME, Builder, Order, cheapest, pool_name, tags_of_builder
from updraft.provision.images.transfer import DEADLINE, Place
from updraft.provision.images.waiting import Watch, discard, ready

_POOL_DEADLINE = 20.0
_PEOPLE = range(1000, 60000)  # user ids, as Linux gives them out


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """What is asked for, of whichever verb; what is None or empty is the class's, or the only one.

    `trial` is the file of the trial job's script, `user` who submits it; with `untried` there is none.
    """

    name: str
    worker_class: str | None = None
    cloud: str = ""
    base: str = ""
    layers: tuple[Path, ...] = ()
    flavor: str = ""
    trial: Path | None = None
    user: str = ""
    untried: bool = False


@dataclass(frozen=True, slots=True)
class _Build:
    """A wish with all of it decided. `baked`: the layers of the class are in the base already."""

    wish: ImageRequest
    worker_class: str
    base: str
    origin: str
    script: str
    baked: bool = False


def build(settings: Settings, wish: ImageRequest, watch: Watch) -> tuple[Place, MachineImage]:
    """Build a worker image: its machine is launched, prepared, tried by a job, cleaned and kept."""
    found = _class(settings, wish.worker_class)
    place = place_of(settings, wish.cloud or _only_cloud(settings, found))
    image = wish.base or settings.images_of(settings.classes[found]).get(place.cloud, "")
    if not image:
        raise UsageError(f"class {found} has no image in cloud {place.cloud}; say one with --from")
    what = _Build(wish, found, image, image, _script(wish.trial, wish.untried))
    return place, _build(settings, place.cloud, what, watch)


def make(
    settings: Settings, machine: str, wish: ImageRequest, watch: Watch, *, busy: bool
) -> tuple[Place, MachineImage]:
    """Make a worker image of a machine: of a second one that is booted from a copy of its disk.

    Raises UsageError where jobs run on it, unless `busy` says that this is meant.
    """
    found = _class(settings, wish.worker_class)
    place = place_of(settings, wish.cloud or _only_cloud(settings, found))
    place.free(wish.name)
    if not busy:
        _refuse_busy(settings, machine)
    copied = ""
    try:
        tags = {**place.tags, TAG_FROM: machine}
        copied = place.images.create(machine, f"{wish.name}-copy-{token_hex(3)}", tags)
        watch.say(f"copying the disk of {machine}; the copy is {copied}")
        ready(place.images, copied, DEADLINE, watch)
        what = _Build(wish, found, copied, machine, _script(wish.trial, wish.untried), baked=True)
        return place, _build(settings, place.cloud, what, watch)
    finally:
        if copied:
            discard(place.images, copied, watch)


# ------------------------------------------------------------------------------------------------ inside


def _build(settings: Settings, cloud: str, what: _Build, watch: Watch) -> MachineImage:
    own = pool_name(settings.pool.name)
    alone = settings.model_copy(update={"pool": settings.pool.model_copy(update={"name": own})})
    machines = wiring.make_cloud(alone, cloud, alone.clouds[cloud]).machines
    key = f"image-{token_hex(6)}"
    with HTCondorPool(wiring.access(alone)) as pool:
        builder = Builder(place_of(settings, cloud), machines, pool, watch)
        builder.sweep()
        trial = Trial(wiring.access(alone), what.wish.user or _somebody(), ATTR_TRIAL, key)
        try:
            return builder.build(_order(alone, machines, pool, cloud, what, key), trial)
        finally:
            trial.close()


def _order(
    settings: Settings, machines: Machines, pool: HTCondorPool, cloud: str, what: _Build, key: str
) -> Order:
    """The machine that is asked for: a worker of the class with the layer that makes an image of it."""
    wish, found = what.wish, settings.classes[what.worker_class]
    patterns = (wish.flavor,) if wish.flavor else found.flavors
    flavor, zone = cheapest(machines, lambda one: chosen(one, patterns))
    offer = Offer(
        worker_class=what.worker_class, cloud=cloud, zone=zone, flavor=flavor, market="on-demand",
        image=what.base, generation=settings.generation(what.worker_class), resources=Resources(), kind="",
    )  # fmt: skip
    spec = wiring.worker_spec(
        settings, wiring.asker(settings), Launch(key, offer, 1, Reason("image", "makes an image")),
        pool.mint_token(key, LIFETIME),
    )  # fmt: skip
    given = tuple(parse_layer(path.name, path.read_text(encoding="utf-8")) for path in wish.layers)
    layers = () if what.baked else given or spec.layers
    spec = replace(spec, layers=(*layers, baking_layer(key)), lifetime=LIFETIME, startd_gone_after=LIFETIME)
    return Order(
        wish.name,
        what.origin,
        LaunchRequest(
            key=key, count=1, image=what.base, flavor=flavor, zone=zone, market="on-demand",
            user_data=worker_user_data(spec), tags=tags_of_builder(what.worker_class),
        ),
        what.script,
    )  # fmt: skip


def _somebody() -> str:
    """Who submits a job where nobody is named: a person, since HTCondor takes no jobs of root."""
    caller = os.environ.get("SUDO_USER", "")
    if caller not in ("", "root"):
        return caller
    people = [one for one in getpwall() if one.pw_uid in _PEOPLE]
    if not people:
        raise UsageError("this machine has no user who could submit the trial job; say one with --as")
    return min(people, key=lambda one: one.pw_uid).pw_name


def _script(trial: Path | None, untried: bool) -> str:
    if untried:
        return ""
    return USUAL if trial is None else trial.read_text(encoding="utf-8")


def _class(settings: Settings, asked: str | None) -> str:
    if asked is None and len(settings.classes) == 1:
        return next(iter(settings.classes))
    if asked is None or asked not in settings.classes:
        raise UsageError(f"say one of the classes {', '.join(settings.classes)}")
    return asked


def _only_cloud(settings: Settings, worker_class: str) -> str:
    clouds = settings.clouds_of(settings.classes[worker_class])
    if len(clouds) > 1:
        raise UsageError(f"class {worker_class} is for more than one cloud; say one of {', '.join(clouds)}")
    return clouds[0]


def _refuse_busy(settings: Settings, machine: str) -> None:
    """Raises UsageError where jobs run on it."""
    with HTCondorPool(wiring.access(settings)) as pool:
        slots = pool.slots(_POOL_DEADLINE).view.slots
    if any(slot.busy for slot in slots if slot.instance_id == machine):
        raise UsageError(
            f"jobs run on {machine}: `updraft drain {machine}` and wait until they are done, or say --busy"
        )
