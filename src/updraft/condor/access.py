"""How a pool is reached: which configuration HTCondor's libraries and tools are given."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from updraft.errors import PoolError


@dataclass(frozen=True, slots=True)
class PoolAccess:
    """Where a pool is and by what right it is asked.

    `name` is the pool's name in updraft.toml. `collector` and `token_dir` None mean the system's own HTCondor
    configuration, as on the head; otherwise a few lines are written to a private file. `condor_config` names
    a configuration to use as it is, instead. `tools` are words put before each of HTCondor's tools (a command
    that enters the place where they are installed). `worker_identity` is the user part of the identity that
    workers' tokens carry, `{launch}` in it is replaced by the launch key; `signing_key` names their key.
    `broker_key` is the key of the broker's tokens, and `broker_keys` the folder that holds it and no other.
    `own_tokens` is whether machines ask for tokens of their own at their boot.
    """

    name: str
    collector: str | None = None
    token_dir: Path | None = None
    trust_domain: str = ""
    condor_config: Path | None = None
    tools: tuple[str, ...] = ()
    worker_identity: str = "updraft-worker"
    signing_key: str = "updraft-workers"
    broker_keys: str = ""
    broker_key: str = ""
    own_tokens: bool = False


def config_lines(access: PoolAccess) -> str:
    """The private configuration for a place that isn't the head."""
    lines = ["LOCAL_CONFIG_FILE =", "LOCAL_CONFIG_DIR =", "use security:recommended"]
    if access.collector:
        lines += [f"CONDOR_HOST = {access.collector}", f"COLLECTOR_HOST = {access.collector}"]
    if access.token_dir is not None:
        lines.append(f"SEC_TOKEN_DIRECTORY = {access.token_dir}")
    if access.trust_domain:
        lines += [f"TRUST_DOMAIN = {access.trust_domain}", f"UID_DOMAIN = {access.trust_domain}"]
    for line in lines:
        if "\n" in line:
            raise PoolError("a setting of the pool has a line break in it; remove it from updraft.toml")
    return "\n".join(lines) + "\n"


def environment(access: PoolAccess, folder: Path) -> Mapping[str, str]:
    """The variables to add to the environment of a child or tool; `folder` is private and takes the
    written file.
    """
    if access.condor_config is not None:
        return {"CONDOR_CONFIG": str(access.condor_config)}
    if access.collector is None and access.token_dir is None:
        return {}
    path = folder / "condor_config"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(config_lines(access), encoding="utf-8")
    return {"CONDOR_CONFIG": str(path)}
