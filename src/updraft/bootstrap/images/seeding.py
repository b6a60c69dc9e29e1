"""What turns a plain machine into a seed image: HTCondor and updraft put in, then cleaned and looked through.

It is told nothing of any pool: no updraft.toml, no key, no token.
"""

from dataclasses import dataclass, field

from updraft.bootstrap import machine
from updraft.bootstrap.head.source import checked_source
from updraft.bootstrap.images.baking import bake_files, bake_settings
from updraft.bootstrap.layers import Layer
from updraft.bootstrap.worker.install import Install, install_files


@dataclass(frozen=True, slots=True)
class SeedSpec:
    """What a seed image gets: as the fields of the same names in `HeadSpec`. `lifetime` is in seconds.

    After that the machine powers itself off, should whoever launched it be gone.
    """

    install: Install = field(default_factory=Install)
    updraft: str = "/usr/local/bin/updraft"
    source: str = ""
    index: str = ""
    lifetime: float = 4 * 3600.0
    layers: tuple[Layer, ...] = ()


def seed_layers(spec: SeedSpec) -> tuple[Layer, ...]:
    """The layers of its user-data. Raises BootstrapError for what can't be, UsageError for its `source`."""
    checked_source(spec.source, spec.index)
    told = {"UPDRAFT": spec.updraft, "SOURCE": spec.source, "INDEX": spec.index}
    own = {
        "write_files": [
            machine.file(f"{machine.SCRIPTS}/get-updraft", machine.shipped("get-updraft.sh"), "0755"),
            machine.file(f"{machine.SCRIPTS}/seed", machine.shipped("seed.sh"), "0755"),
            *install_files(spec.install),
            *bake_files(bake_settings(startd=False)),
            machine.settings_file(machine.BOOT_CONF, told),
        ],
        "bootcmd": [["sh", "-c", f"shutdown -P +{round(spec.lifetime / 60)} || :"]],
    }
    last = {"runcmd": machine.boot_steps(f"sh {machine.SCRIPTS}/seed")}
    return (
        Layer("updraft's seed image", own),
        *spec.layers,
        Layer("the making of a seed image", last),
    )
