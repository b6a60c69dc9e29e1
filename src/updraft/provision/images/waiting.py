"""Waiting for something with a deadline, and saying so: every step of this room ends in a known time."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from updraft.clouds.imaging import Imaging, MachineImage
from updraft.errors import CloudError, CloudUnavailable, ImageError, Throttled

_TRIES = 3
T = TypeVar("T")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Watch:
    """How time passes: a clock of seconds, how to sleep, how often to look, and whom to tell."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    every: float = 2.0
    say: Say = lambda _line: None

    def until(self, look: Callable[[], T | None], deadline: float, what: str) -> T:
        """What `look` returns once that isn't None; a cloud that doesn't answer is asked again.

        Raises ImageError that names `what` after `deadline` seconds, with the cloud's last words if any.
        """
        end, trouble = self.clock() + deadline, ""
        while True:
            try:
                found = look()
                trouble = ""
            except (CloudUnavailable, Throttled) as error:
                found, trouble = None, f": {error}"
            if found is not None:
                return found
            if self.clock() >= end:
                raise ImageError(f"{what}: not within {deadline:g} s{trouble}")
            self.sleep(self.every)


def ready(images: Imaging, image: str, deadline: float, watch: Watch) -> MachineImage:
    """The image once it can be launched. Raises ImageError where it fails, vanishes or takes too long."""

    def look() -> MachineImage | None:
        found = images.show(image)
        if found is not None and found.state == "failed":
            raise ImageError(f"image {image} failed in the cloud ({found.info.state})")
        return found if found is not None and found.state == "ready" else None

    return watch.until(look, deadline, f"image {image} is in the making")


@contextlib.contextmanager
def or_removed(images: Imaging, image: str, watch: Watch) -> Iterator[None]:
    """An image that doesn't come to be right in here is removed again."""
    try:
        yield
    except BaseException:
        discard(images, image, watch)
        raise


def discard(images: Imaging, image: str, watch: Watch) -> None:
    """Remove an image that nobody is to have; nothing is raised, and one that can't be removed is named."""
    for left in reversed(range(_TRIES)):
        try:
            images.delete(image)
        except CloudError as error:
            if left and isinstance(error, CloudUnavailable | Throttled):
                watch.sleep(watch.every)
                continue
            watch.say(f"image {image} stays, of no use ({error}): `updraft leftovers --remove` removes it")
        else:
            watch.say(f"image {image} is deleted again")
        return
