"""A seed image: what a head boots, with HTCondor and updraft on it and no credential of anybody."""

from updraft.clouds.imaging import MachineImage
from updraft.provision.images.making import Maker, Order


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
