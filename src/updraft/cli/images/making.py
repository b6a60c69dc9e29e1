"""`image build` and `image make`: a worker image of a base image and layers, or of a running machine."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from pwd import getpwall
from secrets import token_hex
from typing import TYPE_CHECKING

import click

from updraft.app.call import Call
from updraft.cli.images.image import DEADLINE, cloud_option, name_option, place_of, tell, watch
from updraft.core.slots.choice import chosen
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.bootstrap import Layer
    from updraft.clouds.base import Driver
    from updraft.condor.pool import HTCondorPool
    from updraft.config.model import Settings
    from updraft.provision.images.builder import Order

_POOL_DEADLINE = 20.0
_PEOPLE = range(1000, 60000)  # user ids, as Linux gives them out

flavor_option = click.option("--flavor", default="", help="On which flavor. Default: the class's cheapest.")
user_option = click.option(
    "--as",
    "user",
    default="",
    help="Who submits the trial job. Default: who called sudo, else the first user.",
)
trial_option = click.option(
    "--trial",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A script that the trial job runs; it must end with 0. Default: one that says where it is.",
)
untried_option = click.option("--no-test", "untried", is_flag=True, help="No trial job.")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for, of whichever verb."""

    name: str
    base: str
    origin: str
    worker_class: str
    layers: tuple[Path, ...]
    flavor: str
    user: str
    script: str


@click.command(short_help="A worker image of a base image and layers.")
@click.argument("worker_class", metavar="[CLASS]", required=False)
@name_option
@cloud_option
@click.option("--from", "base", default="", metavar="IMAGE", help="The base. Default: the class's image.")
@click.option(
    "--layer",
    "layers",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What to do to it, as a class's layer; several in their order. Default: the class's layers.",
)
@flavor_option
@trial_option
@user_option
@untried_option
@click.pass_obj
def build(
    call: Call,
    worker_class: str | None,
    name: str,
    cloud: str,
    base: str,
    layers: tuple[Path, ...],
    flavor: str,
    trial: Path | None,
    user: str,
    untried: bool,
) -> None:
    """Build a worker image: launch a machine, prepare it as CLASS says, try it by a job, clean it, keep it.

    On the pool's head, as root. The machine runs no other job, is ended in any case, and its image is made
    only when it holds no key, token or credential any more.
    """
    settings = call.settings
    found = _class(settings, worker_class)
    place = place_of(settings, cloud or _only_cloud(settings, found))
    image = base or settings.images_of(settings.classes[found]).get(place.cloud, "")
    if not image:
        raise UsageError(f"class {found} has no image in cloud {place.cloud}; say one with --from")
    wish = Wish(name, image, image, found, layers, flavor, user, _script(trial, untried))
    with ended_by_term():
        _build(settings, place.cloud, wish)


@click.command(short_help="An image of a running machine.")
@click.argument("machine")
@name_option
@cloud_option
@click.option("--class", "worker_class", default=None, metavar="CLASS", help="The class that it will be for.")
@click.option("--busy", is_flag=True, help="Also where jobs run; what they have written is taken out again.")
@flavor_option
@trial_option
@user_option
@untried_option
@click.pass_obj
def make(
    call: Call,
    machine: str,
    name: str,
    cloud: str,
    worker_class: str | None,
    busy: bool,
    flavor: str,
    trial: Path | None,
    user: str,
    untried: bool,
) -> None:
    """Make a worker image of MACHINE, an instance id of the cloud: one that you have made as you want it.

    MACHINE goes on as it is: its disk is copied, and a second machine is booted from the copy, tried by a
    job, cleaned and kept; the copy is deleted. Write what is in memory to the disk first (`sync`). Jobs must
    not run there meanwhile: refused where they do, so `updraft drain` it first.
    """
    from updraft.clouds.imaging import TAG_FROM
    from updraft.provision.images.waiting import discard, ready

    settings = call.settings
    found = _class(settings, worker_class)
    place = place_of(settings, cloud or _only_cloud(settings, found))
    place.free(name)
    if not busy:
        _refuse_busy(settings, machine)
    watching, copied = watch(), ""
    with ended_by_term():
        try:
            tags = {**place.tags, TAG_FROM: machine}
            copied = place.images.create(machine, f"{name}-copy-{token_hex(3)}", tags)
            watching.say(f"copying the disk of {machine}; the copy is {copied}")
            ready(place.images, copied, DEADLINE, watching)
            wish = Wish(name, copied, machine, found, (), flavor, user, _script(trial, untried))
            _build(settings, place.cloud, wish, baked=True)
        finally:
            if copied:
                discard(place.images, copied, watching)


# ------------------------------------------------------------------------------------------------ inside


def _build(settings: "Settings", cloud: str, wish: Wish, *, baked: bool = False) -> None:
    """Build it and say so. `baked`: the layers of the class are in the base already."""
    from updraft.app.wiring import access, make_driver
    from updraft.bootstrap.images.baking import ATTR_TRIAL
    from updraft.condor.pool import HTCondorPool
    from updraft.condor.support.trial import Trial
    from updraft.provision.images.builder import Builder, pool_name

    own = pool_name(settings.pool.name)
    alone = settings.model_copy(update={"pool": settings.pool.model_copy(update={"name": own})})
    driver, watching = make_driver(alone, cloud, alone.clouds[cloud]), watch()
    key = f"image-{token_hex(6)}"
    with HTCondorPool(access(alone)) as pool:
        place = place_of(settings, cloud)
        builder: Builder = Builder(place, driver, pool, watching)
        builder.sweep()
        trial = Trial(access(alone), wish.user or _somebody(), ATTR_TRIAL, key)
        try:
            order = _order(alone, driver, pool, cloud, wish, key, baked=baked)
            tell(place, builder.build(order, trial))
        finally:
            trial.close()
    click.echo('  condor = "image"')


def _order(
    settings: "Settings",
    driver: "Driver",
    pool: "HTCondorPool",
    cloud: str,
    wish: Wish,
    key: str,
    *,
    baked: bool,
) -> "Order":
    """The machine that is asked for: a worker of the class with the layer that makes an image of it."""
    from updraft.app.wiring import asker, worker_spec
    from updraft.bootstrap.images.baking import baking_layer
    from updraft.bootstrap.layers import parse_layer
    from updraft.bootstrap.worker.userdata import worker_user_data
    from updraft.clouds.base import LaunchRequest
    from updraft.core.model import Launch, Offer, Reason, Resources
    from updraft.provision.images.builder import LIFETIME, Order, cheapest, tags_of_builder

    found = settings.classes[wish.worker_class]
    patterns = (wish.flavor,) if wish.flavor else found.flavors
    flavor, zone = cheapest(driver, lambda one: chosen(one, patterns))
    offer = Offer(
        worker_class=wish.worker_class, cloud=cloud, zone=zone, flavor=flavor, market="on-demand",
        image=wish.base, generation=settings.generation(wish.worker_class), resources=Resources(), kind="",
    )  # fmt: skip
    spec = worker_spec(
        settings, asker(settings), Launch(key, offer, 1, Reason("image", "makes an image")),
        pool.mint_token(key, LIFETIME),
    )  # fmt: skip
    given: tuple[Layer, ...] = tuple(
        parse_layer(path.name, path.read_text(encoding="utf-8")) for path in wish.layers
    )
    layers = () if baked else given or spec.layers
    spec = replace(spec, layers=(*layers, baking_layer(key)), lifetime=LIFETIME, startd_gone_after=LIFETIME)
    return Order(
        wish.name,
        wish.origin,
        LaunchRequest(
            key=key, count=1, image=wish.base, flavor=flavor, zone=zone, market="on-demand",
            user_data=worker_user_data(spec), tags=tags_of_builder(wish.worker_class),
        ),
        wish.script,
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
    from updraft.condor.support.trial import USUAL

    if untried:
        return ""
    return USUAL if trial is None else trial.read_text(encoding="utf-8")


def _class(settings: "Settings", asked: str | None) -> str:
    if asked is None and len(settings.classes) == 1:
        return next(iter(settings.classes))
    if asked is None or asked not in settings.classes:
        raise UsageError(f"say one of the classes {', '.join(settings.classes)}")
    return asked


def _only_cloud(settings: "Settings", worker_class: str) -> str:
    clouds = settings.clouds_of(settings.classes[worker_class])
    if len(clouds) > 1:
        raise UsageError(f"class {worker_class} is for more than one cloud; say one of {', '.join(clouds)}")
    return clouds[0]


def _refuse_busy(settings: "Settings", machine: str) -> None:
    """Raises UsageError where jobs run on it."""
    from updraft.app.wiring import access
    from updraft.condor.pool import HTCondorPool

    with HTCondorPool(access(settings)) as pool:
        slots = pool.slots(_POOL_DEADLINE).view.slots
    if any(slot.busy for slot in slots if slot.instance_id == machine):
        raise UsageError(
            f"jobs run on {machine}: `updraft drain {machine}` and wait until they are done, or say --busy"
        )


@contextmanager
def ended_by_term() -> Iterator[None]:
    """A request to end is as good as Ctrl-C: what was begun is taken back."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
