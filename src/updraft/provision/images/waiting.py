"""Waiting for something with a deadline, and saying so: every step of this room ends in a known time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from updraft.clouds.imaging import Imaging, MachineImage
from updraft.errors import CloudUnavailable, ImageError, Throttled

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
