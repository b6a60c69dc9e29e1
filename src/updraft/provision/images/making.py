"""What every making of an image has in common: its machine, the looks at it, the image, and its end.

The machine carries the tag of a pool of its own (`POOL.images`), so that the pool's controller takes it for
somebody else's, and whoever makes the next image finds it. It is ended however this ends; should even that
fail, it powers itself off once its lifetime is over.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from updraft.bootstrap.images.baking import verdict
from updraft.clouds.base import TAG_IDENTITY, LaunchRequest, Machines
from updraft.clouds.imaging import TAG_FROM, MachineImage
from updraft.config.values.checks import IMAGES
from updraft.core.model import CloudState, Instance
from updraft.errors import CloudError, ImageError
from updraft.provision.images.transfer import Place
from updraft.provision.images.waiting import Watch, or_removed, ready

LIFETIME = 4 * 3600.0
"""Seconds after which a machine that makes an image is nobody's any more, and ended by whoever finds it."""
_TRIES = 3
_OVER = (CloudState.TERMINATED, CloudState.STOPPING)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that each step may take."""

    boot: float = 1800.0
    trial: float = 900.0
    clean: float = 600.0
    stop: float = 600.0
    image: float = 3600.0


@dataclass(frozen=True, slots=True)
class Order:
    """An image to be made: its name, what it is said to be made from, and the machine that it is made of.

    `script` is the trial job's; empty for none. Everything else was decided by whoever fills it in.
    """

    name: str
    origin: str
    request: LaunchRequest
    script: str = ""


def pool_name(pool: str) -> str:
    """The name of the pool that machines which make images belong to."""
    return pool + IMAGES


class Maker:
    """A machine in one cloud that becomes an image.

    `machines` are those of `pool_name`; `place` carries the pool's own tag.
    """

    def __init__(
        self,
        place: Place,
        machines: Machines,
        watch: Watch,
        deadlines: Deadlines | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._place = place
        self._machines = machines
        self._watch = watch
        self._deadlines = deadlines or Deadlines()
        self._now = now
        # Of the tags of the images only this: the pool that the machine belongs to is another.
        self._own = {key: text for key, text in place.tags.items() if key == TAG_IDENTITY}

    def sweep(self) -> None:
        """End the machines of builds that are over long ago, and name those that may be under way."""
        for one in self._machines.machines():
            if one.state in _OVER:
                continue
            if self._now() - one.launched_at > LIFETIME:
                self._watch.say(f"ending {one.id}, left over by an earlier build")
                self._machines.terminate([one.id])
            else:
                self._watch.say(f"another image is in the making on {one.id}")

    @contextlib.contextmanager
    def _machine(self, request: LaunchRequest) -> Iterator[str]:
        """A machine of this request, ended at the end, also where the answer to its launch was lost."""
        try:
            launched = self._machines.launch(replace(request, tags={**self._own, **request.tags}))
            self._watch.say(f"machine {launched[0].id} ({request.flavor}) boots {request.image}")
            yield launched[0].id
        finally:
            self._end(request.key)

    def _keep(self, machine: str, order: Order) -> MachineImage:
        """The image of the machine as it is now; one that doesn't come to be ready is removed."""
        images = self._place.images
        if images.halt(machine):
            self._watch.until(
                lambda: self._seen(machine).state is CloudState.STOPPED or None,
                self._deadlines.stop,
                f"machine {machine} stops",
            )
        one = images.create(machine, order.name, {**self._place.tags, TAG_FROM: order.origin[:200]})
        self._watch.say(f"image {one} is in the making")
        with or_removed(images, one, self._watch):
            return ready(images, one, self._deadlines.image, self._watch)

    # ------------------------------------------------------------------------------------------- looks

    def _seen(self, machine: str) -> Instance:
        found = {one.id: one for one in self._machines.machines()}.get(machine)
        if found is None:
            raise ImageError(f"machine {machine} has vanished")
        return found

    def _alive(self, machine: str) -> None:
        found = {one.id: one for one in self._machines.machines()}.get(machine)
        if found is not None and found.state not in (CloudState.PENDING, CloudState.RUNNING):
            raise ImageError(
                f"machine {machine} is {found.state.value}: {found.fault or 'no reason is told'}"
            )

    def _fit(self, machine: str) -> bool:
        """Whether its console says that it may be an image. Raises ImageError where that it never will."""
        fit, why = verdict(self._machines.console(machine))
        if why:
            raise ImageError(f"machine {machine}: {why}")
        return fit

    def _end(self, key: str) -> None:
        """End every machine of this launch, and say so; what can't be ended is named."""
        trouble = ""
        for _ in range(_TRIES):
            try:
                mine = [
                    one.id
                    for one in self._machines.machines()
                    if one.launch_key == key and one.state not in _OVER
                ]
                self._machines.terminate(mine)
            except CloudError as error:
                trouble = str(error)
                self._watch.sleep(self._watch.every)
            else:
                for one in mine:
                    self._watch.say(f"machine {one} is ended")
                return
        self._watch.say(
            f"the machine of launch {key} can't be ended ({trouble}); it powers itself off within "
            f"{LIFETIME / 3600:g} h, and the next `updraft image build` looks for it"
        )


class SeedMaker(Maker):
    """Makes seed images in one cloud. No pool knows of its machines: they run no job."""

    def make(self, order: Order) -> MachineImage:
        """The image, ready. Raises what went wrong; its machine is ended in any case, half an image too."""
        self._place.free(order.name)
        with self._machine(order.request) as machine:

            def fit() -> bool | None:
                self._alive(machine)
                return self._fit(machine) or None

            self._watch.until(fit, self._deadlines.boot, f"machine {machine} is prepared and cleaned")
            self._watch.say("it has HTCondor and updraft, and holds no credential")
            return self._keep(machine, order)
