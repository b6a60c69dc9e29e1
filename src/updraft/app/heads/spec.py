"""What a head is told at its first boot: for `userdata head` and `head launch`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from updraft.app.poolsize import largest
from updraft.bootstrap import HeadSpec, Install, Layer
from updraft.bootstrap.head.source import chosen_source
from updraft.bootstrap.head.userdata import head_layers, paced
from updraft.config import DEFAULT_STATE_DIR, parse
from updraft.config.model import Settings
from updraft.errors import UsageError
from updraft.provision.setup.service import UNWRITABLE

HEAD_DIR = Path("/etc/updraft")


@dataclass(frozen=True, slots=True)
class HeadWish:
    """What is asked for; see the options of `head launch`."""

    user: str
    ssh_key: Path | None
    domain: str
    source: str
    index: str
    condor: str
    large: bool
    machines: int | None = None
    anonymous_read: bool = False


def head_told(settings: Settings, file: Path, wish: HeadWish) -> tuple[Layer, ...]:
    """The layers of the user-data of a head with this configuration. UsageError where it is for elsewhere, or
    where nothing says what the head gets updraft from."""
    check_for_head(settings, file)
    name = wish.domain or settings.pool.trust_domain or f"{settings.pool.name}.pool"
    key = wish.ssh_key
    spec = HeadSpec(
        trust_domain=name,
        uid_domain=wish.domain or settings.pool.uid_domain or name,
        users=(wish.user,),
        ssh_keys=() if key is None else tuple(key.read_text(encoding="utf-8").split("\n", 1)[:1]),
        samples=True,
        controller_config=file.read_text(encoding="utf-8"),
        files=dict(_named_files(settings)),
        source=chosen_source(wish.source, wish.index),
        index=wish.index,
        install=installed(wish.condor),
        job_lease=settings.pool.job_lease,
        machines=wish.machines or largest(settings),
        broker=any(one.reach == "ccb" and not one.ccb for one in settings.classes.values()),
        anonymous_read=wish.anonymous_read,
    )
    return head_layers(spec if wish.large else paced(spec))


def installed(condor: str) -> Install:
    """What `--condor` says."""
    return Install(version="" if condor == "image" else condor)


def check_for_head(settings: Settings, file: Path) -> None:
    """Raises UsageError where the configuration is for another place than the pool's own head."""
    pool = settings.pool
    for key, value in (
        ("collector", pool.collector),
        ("token", pool.token),
        ("condor_config", pool.condor_config),
    ):
        if value:
            raise UsageError(
                f"pool.{key} is for a pool that is there already: on its own head there is none; remove it"
            )
    state_dir = Path(_table(parse(file), "pool").get("state_dir", DEFAULT_STATE_DIR))
    if not state_dir.is_absolute() or any(state_dir.is_relative_to(place) for place in UNWRITABLE):
        raise UsageError(
            "pool.state_dir must be an absolute path that the service may write to on the head; leave it "
            "away for /var/lib/updraft"
        )


def _table(tables: Mapping[str, object], name: str) -> dict[str, str]:
    found = tables.get(name)
    return found if isinstance(found, dict) else {}


def _named_files(settings: Settings) -> Iterator[tuple[str, str]]:
    """The files of layers and keys that the configuration names, at the place where it will look for them."""
    for found in settings.classes.values():
        files = [(layer.name, layer.text) for layer in (*found.layers, *found.offered_layers.values())]
        files += [(one.key.name, one.key.text) for one in found.cvmfs if one.key is not None]
        for name, text in files:
            if name != "inline":
                yield str(HEAD_DIR / name), text


def left_behind(settings: Settings) -> Iterator[str]:
    """Files that the clouds' settings name: they are not taken along, least of all credentials."""
    for name, cloud in settings.clouds.items():
        for key, value in cloud.settings.items():
            if isinstance(value, str) and value.startswith("/"):
                yield f"clouds.{name}.{key}: {value} is not in the user-data; it has to be there on the head"
