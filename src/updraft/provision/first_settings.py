"""The text of the updraft.toml that `init` writes: commented, and right by `config.load`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomlkit

from updraft.config import load
from updraft.errors import ConfigError, UsageError

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that was answered. `image_name` is said in a comment where `image` is an id."""

    pool: Mapping[str, Any]
    cloud: str
    driver: str
    settings: Mapping[str, Any]
    image: str
    image_name: str
    flavors: Sequence[str]
    limits: Mapping[str, Any]
    worker_class: str = "default"
    worker: Mapping[str, Any] = field(default_factory=dict)


def text_of(wanted: Wanted) -> str:
    """The file."""
    parts = [_HEAD, _pool(wanted), _cloud(wanted), _class(wanted), _limits(wanted)]
    return "\n".join(parts)


def _pool(wanted: Wanted) -> str:
    said = dict(wanted.pool)
    lines = [
        "[pool]",
        "# A tag on every machine: updraft touches nothing without it. Two pools need two names.",
        _line("name", said.pop("name")),
    ]
    if "collector" not in said:
        lines += [
            "# Where the collector is: not said, so what HTCondor's configuration on this machine says."
        ]
    if "job_lease" in said:
        lines += ["# JOB_DEFAULT_LEASE_DURATION of the schedds: how long a job waits for a vanished machine."]
    lines += [_line(key, value) for key, value in said.items()]
    return _joined(lines)


def _cloud(wanted: Wanted) -> str:
    first = next((one for one in wanted.flavors if not set("*?[!") & set(one)), "small")
    return _joined(
        [
            f"[clouds.{_key(wanted.cloud)}]",
            "# Credentials never stand here: they are taken from the cloud's standard places.",
            _line("driver", wanted.driver),
            *(_setting(key, value) for key, value in wanted.settings.items()),
            "# limits = { machines = 40 }            # for this cloud alone",
            f"# prices = {{ {_key(first)} = 0.05 }}   # per hour, where the cloud doesn't say it",
        ]
    )


def _setting(key: str, value: Any) -> str:
    about = "# The only flavors that the cloud is asked about: a class's must be among them.\n"
    return (about if key == "flavors" and isinstance(value, list) else "") + _line(key, value)


def _class(wanted: Wanted) -> str:
    said = {"min": 0, "idle_limit": "10m", **wanted.worker}
    about = {
        "min": "machines kept even when nothing waits",
        "max": "machines of this class at one time",
        "idle_limit": "how long a machine may be without a job before it goes",
    }
    name = f"   # {wanted.image_name}" if wanted.image_name not in ("", wanted.image) else ""
    lines = [
        f"[classes.{_key(wanted.worker_class)}]",
        "# What the workers boot, and the sizes that may be bought: the cheapest that fits is.",
        _line("image", wanted.image) + name,
        _line("flavors", list(wanted.flavors)),
        *(_line(key, value) for key, value in said.items() if key not in about),
        *(f"{_line(key, said[key]):<40}# {text}" for key, text in about.items() if key in said),
        '# lifetime = "7d"                       # after that a machine takes no new jobs, and goes',
        "# attributes = { Site = '\"lab\"' }       # for the Requirements of jobs",
        '# layers = ["layers/cvmfs.yaml"]        # further user-data: cloud-config or script',
    ]
    return _joined(lines)


def _limits(wanted: Wanted) -> str:
    lines = ["[limits]", "# They hold at every moment; what is left out has no ceiling."]
    examples = {"machines": 10, "cores": 40, "cost_per_hour": 2.5}
    for key, example in examples.items():
        value = wanted.limits.get(key)
        lines.append(f"# {_line(key, example)}" if value is None else _line(key, value))
    return _joined(lines)


def check(path: Path, text: str) -> None:
    """Raise UsageError where the file couldn't be written, or `config.load` wouldn't take it."""
    _through_fresh(path, text, keep=False)


def write(path: Path, text: str) -> None:
    """Write the file, once `config.load` takes it: what is there is replaced in one step, or not at all."""
    _through_fresh(path, text, keep=True)


def _through_fresh(path: Path, text: str, *, keep: bool) -> None:
    fresh = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8")
        load(fresh)
        if keep:
            fresh.replace(path)
    except ConfigError as error:
        said = str(error).replace(fresh.name, path.name)
        raise UsageError(f"these answers make no configuration:\n{said}") from error
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}; name another with --config") from error
    finally:
        fresh.unlink(missing_ok=True)


def _line(key: str, value: Any) -> str:
    return f"{_key(key)} = {_value(value)}"


def _value(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_line(key, inner) for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(tomlkit.item(value).as_string())


def _key(name: str) -> str:
    return tomlkit.key(name).as_string()


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_HEAD = """\
# Written by `updraft init`. Every key: docs/reference/settings.md
# After a change: `updraft config check`; a daemon that runs takes it up with `systemctl reload updraft`.
"""
