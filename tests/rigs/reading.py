"""User-data as cloud-init reads it: what the tests compare with what was asked for."""

import email
import gzip
import importlib.util
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from updraft.bootstrap import WorkerSpec

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ3b3JrZXItTDEifQ.c2VjcmV0"  # noqa: S105 (of no pool)


def shipped(name: str) -> Any:
    """A script that goes onto workers, as a module."""
    path = Path(str(files("updraft.bootstrap").joinpath("files", f"{name}.py")))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(data: bytes) -> bytes:
    """Without the compression."""
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def parts(data: bytes) -> list[tuple[str, str]]:
    """(content type, text) of each part, a lone cloud-config being one part."""
    text = plain(data)
    if text.startswith(b"#cloud-config\n"):
        return [("text/cloud-config", text.decode())]
    found = []
    for part in email.message_from_bytes(text).walk():
        if not part.is_multipart():
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            text = plain(payload)
            unpacked = text is not payload and text.startswith(b"#cloud-config\n")
            kind = "text/cloud-config" if unpacked else part.get_content_type()
            found.append((kind, text.decode()))
    return found


def cloud_config(data: bytes) -> dict[str, Any]:
    """The first part's cloud-config."""
    kind, text = parts(data)[0]
    assert kind == "text/cloud-config"
    loaded = yaml.safe_load(text)
    assert isinstance(loaded, dict)
    return loaded


def written(data: bytes) -> dict[str, dict[str, Any]]:
    """The files that it writes, by path."""
    return {entry["path"]: entry for entry in cloud_config(data)["write_files"]}


def worker(**changes: Any) -> WorkerSpec:
    """A worker's spec with these settings, and ordinary ones for the rest."""
    ordinary: dict[str, Any] = {
        "pool": "demo",
        "collectors": ("10.0.0.2:9618",),
        "trust_domain": "pool.test",
        "uid_domain": "pool.test",
        "token": TOKEN,
        "worker_class": "small",
        "cloud": "local",
        "zone": "z1",
        "image": "forky",
        "flavor": "m.2",
        "market": "on-demand",
        "launch_key": "L1",
        "generation": "g1",
    }
    return WorkerSpec(**(ordinary | changes))
