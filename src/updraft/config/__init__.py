"""The settings of a site: `updraft.toml`, read once and passed down.

Nothing outside this package reads the file or the environment. `load` gives the whole tree, every value
checked; `place` only where the pool's ledger is, for verbs that must answer at once.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from updraft.errors import ConfigAbsent, ConfigError

if TYPE_CHECKING:
    from updraft.config.model import Settings
    from updraft.config.tables.usage import Usage

DEFAULT_STATE_DIR = "/var/lib/updraft"
LEDGER_FILE = "ledger.sqlite"
RECORD_FILE = "record.sqlite"
USUAL_PLACES = ("updraft.toml", "/etc/updraft/updraft.toml")


@dataclass(frozen=True, slots=True)
class PoolPlace:
    """Where a pool is kept: the file that describes it, its name, and the directory of its ledger.

    `acts` is False where updraft only watches it.
    """

    file: Path
    pool: str
    state_dir: Path
    acts: bool = True

    @property
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.state_dir / LEDGER_FILE

    @property
    def record(self) -> Path:
        """The file of the record of what really was."""
        return self.state_dir / RECORD_FILE


def find(asked: str | Path | None = None) -> Path:
    """The configuration file: `asked`, else $UPDRAFT_CONFIG, ./updraft.toml, /etc/updraft/updraft.toml.

    Raises ConfigAbsent when there is none.
    """
    named = asked or os.environ.get("UPDRAFT_CONFIG")
    if named:
        path = Path(named)
        if not path.is_file():
            raise ConfigAbsent(f"{path}: there is no such file; name the configuration with --config PATH")
        return path
    for usual in USUAL_PLACES:
        if Path(usual).is_file():
            return Path(usual)
    raise ConfigAbsent(
        "there is no configuration: neither ./updraft.toml nor /etc/updraft/updraft.toml exists; "
        "write one with `updraft init`, or name it with --config PATH"
    )


def target(asked: str | Path | None = None) -> Path:
    """Where a new configuration is to be written: `asked`, else $UPDRAFT_CONFIG, else ./updraft.toml."""
    return Path(asked or os.environ.get("UPDRAFT_CONFIG") or USUAL_PLACES[0])


def load(path: str | Path) -> "Settings":
    """Read and check the whole file.

    Raises ConfigError with every fault of the file, one line each: file, line, key, and what to do.
    """
    from updraft.config.reading import read  # pydantic costs 0.3 s, and `status` has no use for it

    return read(Path(path))


def place(path: Path) -> PoolPlace:
    """Where this configuration keeps its ledger, the rest of the file unchecked. Takes milliseconds."""
    pool = parse(path).get("pool")
    table: Mapping[str, object] = pool if isinstance(pool, dict) else {}
    name, state_dir = table.get("name"), table.get("state_dir", DEFAULT_STATE_DIR)
    if not isinstance(name, str) or not isinstance(state_dir, str):
        raise ConfigError(f"{path}: [pool] has no usable name or state_dir; see `updraft config check`")
    acts = table.get("act", True) is not False
    return PoolPlace(file=path, pool=name, state_dir=path.parent / state_dir, acts=acts)


def usage(path: Path) -> "Usage":
    """What this configuration says of the records of what was used, the rest of the file unchecked.

    Raises ConfigError, for the whole file, where that is wrong.
    """
    from pydantic import ValidationError

    from updraft.config.tables.usage import Usage

    try:
        return Usage.model_validate(parse(path).get("usage", {}))
    except ValidationError:
        return load(path).usage


def parse(path: Path) -> dict[str, object]:
    """The file as TOML tables, nothing checked. Raises ConfigError when it can't be read or isn't TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path.name}{_line(error)}: this is not TOML: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name}: this is not UTF-8 text; save the file as UTF-8") from error
    except OSError as error:
        own = "; call updraft as root, or as its owner" if isinstance(error, PermissionError) else ""
        raise ConfigAbsent(f"{path}: cannot be read: {error.strerror}{own}") from error


def _line(error: tomllib.TOMLDecodeError) -> str:
    """Where the reader stopped; it says so in words only."""
    _, _, rest = str(error).partition("(at line ")
    number = rest.partition(",")[0]
    return f", line {number}" if number.isdigit() else ""


def wants_traceback() -> bool:
    """True where UPDRAFT_DEBUG=1 asks for the traceback of an unexpected failure."""
    return os.environ.get("UPDRAFT_DEBUG") == "1"
