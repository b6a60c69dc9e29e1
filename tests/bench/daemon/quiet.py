"""What a measured pool need not do."""

from collections.abc import Sequence

from updraft.condor.base import ControllerAd
from updraft.core.model import DrainMode, Slot


class Quiet:
    """The deeds of `updraft.condor.base.Pool`, without any effect; reads are for whoever derives from it."""

    def drain(self, slots: Sequence[Slot], mode: DrainMode, reason: str, deadline: float) -> None: ...
    def undrain(self, slots: Sequence[Slot], deadline: float) -> None: ...
    def forget(self, slots: Sequence[str], deadline: float) -> None: ...
    def announce(self, ad: ControllerAd, lifetime: float, deadline: float) -> None: ...
    def retract(self, ad: ControllerAd, deadline: float) -> None: ...

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        return ()

    def requeue(self, schedd: str, jobs: Sequence[str], machine: str, deadline: float) -> tuple[str, ...]:
        return tuple(jobs)

    def mint_token(self, launch_key: str, lifetime: float) -> str:
        return "a-token"

    def mint_boot_token(self, launch_key: str, boot: float, lifetime: float) -> str:
        return "a-token"
