"""The settings of a local cloud, as `[clouds.NAME]` of updraft.toml holds them; what heads have apart."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from updraft.clouds.heads import HeadPlace, refuse
from updraft.config.values.units import Duration

ENDPOINT_VARIABLE = "UPDRAFT_LOCAL_CLOUD_ENDPOINT"
TOKEN_VARIABLE = "UPDRAFT_LOCAL_CLOUD_TOKEN"  # noqa: S105  # the name of a variable
STATE = Path("/run/updraft/local")
"""Where a cloud keeps its socket and credentials, unless it is told otherwise."""
_ENDPOINTS = ("unix:/", "http://")


def _endpoint(value: str) -> str:
    if not value.startswith(_ENDPOINTS):
        raise ValueError(
            f'"{value}" is not an address of a local cloud; write "unix:/path" or "http://host:port", '
            "as `updraft local up` says it"
        )
    return value


class Settings(BaseModel):
    """The cloud on one machine, as `updraft local up` started it, and how it is reached."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    endpoint: Annotated[str, AfterValidator(_endpoint)]
    """The address of its API: `unix:/path` on this host, `http://host:port` from one of its machines. The
    variable UPDRAFT_LOCAL_CLOUD_ENDPOINT comes before it."""
    credential_file: Path | None = None
    """File with the credential. None: the variable UPDRAFT_LOCAL_CLOUD_TOKEN, else the file beside the socket
    of a `unix:` endpoint, else the machine's own role."""
    role: Literal["", "controller"] = ""
    """The role that machines are launched with: "controller", which is for heads alone, lets them use the
    cloud's API. Empty: none."""
    timeout: Annotated[Duration, Field(gt=0, le=50)] = 30.0
    """How long a call may take to be answered."""


class LocalHeads:
    """A head's role is a setting, and one enters it from the host. See `updraft.clouds.heads.HeadTraits`."""

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
