"""A head on the local cloud: its role is a setting, and one enters it from the host."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from updraft.clouds.heads import HeadPlace, refuse
from updraft.clouds.local.settings import ENDPOINT_VARIABLE, STATE


class LocalHeads:
    """See `updraft.clouds.heads.HeadTraits`."""

    def settings(self, own: Mapping[str, object], place: HeadPlace) -> Mapping[str, object]:
        """`role` "controller" lets the head use the cloud."""
        refuse(place, ("key_name", "private", "floating"))
        return {**own, "role": place.role}

    def login(self, machine: str, address: str, user: str) -> str:
        """By no SSH, but from the host; of a cloud elsewhere than usual the folder has to be said."""
        folder = Path(os.environ.get(ENDPOINT_VARIABLE, "").removeprefix("unix:")).parent
        known = folder == STATE or not folder.is_absolute()
        state = "" if known else f"--state {shlex.quote(str(folder))} "
        return f"updraft local shell {state}--user {user} {machine}"
