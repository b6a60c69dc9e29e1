"""What a head is told at its first boot, as options say it: for `userdata head` and `head launch`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.errors import UsageError
from updraft.provision.setup.service import UNWRITABLE

if TYPE_CHECKING:
    from updraft.bootstrap import HeadSpec, Install, Layer
    from updraft.config.model import Settings

HEAD_DIR = Path("/etc/updraft")


@dataclass(frozen=True, slots=True)
class HeadWish:
    """What the options of `head_options` say."""

    user: str
    ssh_key: Path | None
    domain: str
    source: str
    index: str
    condor: str
    large: bool
    machines: int | None = None
    anonymous_read: bool = False


anonymous_read_option = click.option(
    "--anonymous-read",
    is_flag=True,
    help="Whoever reaches the head may read the pool's ads and jobs, jobs on workers too. Default: who has "
    "an account on the head or a token.",
)
source_option = click.option(
    "--source",
    default="",
    metavar="WHEEL",
    help="Where the machine gets updraft: the address of its wheel with the hash, https://…#sha256=…, or "
    '"image" where the image has it. Default: the wheel that this updraft was installed from, if known.',
)
index_option = click.option(
    "--index",
    default="",
    help="The package index (https://) that pip asks for what updraft needs, by hash, or a folder of wheels "
    "on the machine (file:///). Default: pip's own.",
)
condor_option = click.option(
    "--condor",
    default="25.x",
    show_default=True,
    help='The HTCondor to install where the image has none, or "image" to leave that away.',
)
_OPTIONS = (
    click.option(
        "--user", default="user", show_default=True, help="The first user, who finds sample jobs at home."
    ),
    click.option(
        "--ssh-key",
        "ssh_key",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File with the public key that lets the first user in. The image's own user has the cloud's "
        "key.",
    ),
    click.option("--domain", default="", help="Trust and UID domain of the pool. Default: POOL.pool."),
    source_option,
    index_option,
    condor_option,
    click.option(
        "--large",
        is_flag=True,
        help="HTCondor's own intervals, for a large pool; else those that suit its number of machines.",
    ),
    click.option(
        "--machines",
        type=click.IntRange(min=1),
        help="Most machines that the pool will have, for which it is tuned. Default: what the file allows.",
    ),
    anonymous_read_option,
)


def head_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a verb that makes a head's user-data; it is called with the fields of `HeadWish`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def head_told(settings: "Settings", file: Path, wish: HeadWish) -> "tuple[Layer, ...]":
    """The layers of the user-data of a head with this configuration. UsageError where it is for elsewhere, or
    where nothing says what the head gets updraft from."""
    from updraft.app.poolsize import largest
    from updraft.bootstrap import HeadSpec
    from updraft.bootstrap.head.source import chosen_source
    from updraft.bootstrap.head.userdata import head_layers

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
    return head_layers(_paced(spec, wish.large))


def _paced(spec: "HeadSpec", large: bool) -> "HeadSpec":
    from updraft.bootstrap.head.userdata import paced

    return spec if large else paced(spec)


def installed(condor: str) -> "Install":
    """What `--condor` says."""
    from updraft.bootstrap import Install

    return Install(version="" if condor == "image" else condor)


def check_for_head(settings: "Settings", file: Path) -> None:
    """Raises UsageError where the configuration is for another place than the pool's own head."""
    from updraft.config import DEFAULT_STATE_DIR, parse

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


def _named_files(settings: "Settings") -> Iterator[tuple[str, str]]:
    """The files of layers and keys that the configuration names, at the place where it will look for them."""
    for found in settings.classes.values():
        files = [(layer.name, layer.text) for layer in (*found.layers, *found.offered_layers.values())]
        files += [(one.key.name, one.key.text) for one in found.cvmfs if one.key is not None]
        for name, text in files:
            if name != "inline":
                yield str(HEAD_DIR / name), text


def left_behind(settings: "Settings") -> Iterator[str]:
    """Files that the clouds' settings name: they are not taken along, least of all credentials."""
    for name, cloud in settings.clouds.items():
        for key, value in cloud.settings.items():
            if isinstance(value, str) and value.startswith("/"):
                yield f"clouds.{name}.{key}: {value} is not in the user-data; it has to be there on the head"
