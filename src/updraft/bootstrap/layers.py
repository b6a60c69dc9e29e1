"""Layers of user-data: how they merge, and how they become the bytes that cloud-init takes.

A layer is cloud-config (a mapping) or a script. Layers of cloud-config merge in their order into one:

- mappings merge, key by key;
- lists append;
- of two scalars the later layer's wins (also a scalar against none);
- a list, a mapping and a scalar never merge with one another: that is an error, which names the layer.

A layer that says itself how it wants to be merged (`merge_how`, `merge_type`) stays a part of its own, and
cloud-init merges it. Scripts stay parts too; cloud-init runs them in the last stage, in their order, and
before the `runcmd` of the merged cloud-config.
"""

import base64
import gzip
import hashlib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart
from email.mime.text import MIMEText
from typing import Any

import yaml

from updraft.errors import BootstrapError

EC2_LIMIT = 16384
"""Bytes of user-data that EC2 takes, before its own base64."""

_HEADER = "#cloud-config"
_LONGEST_LINE = 900  # of plain text in a MIME part; the standard ends at 998


@dataclass(frozen=True, slots=True)
class Layer:
    """One named layer: `content` is cloud-config (a mapping), or the text of a script or of CernVM's context.

    The content may hold secrets and never shows in a `repr`.
    """

    name: str
    content: Mapping[str, Any] | str = field(repr=False)

    @property
    def is_script(self) -> bool:
        """True for a script, False for cloud-config."""
        return isinstance(self.content, str) and not self.is_context

    @property
    def is_context(self) -> bool:
        """True for what CernVM's own tools read, `[section]` and `name=value`; cloud-init passes it over."""
        return isinstance(self.content, str) and self.content.startswith("[")


def parse_layer(name: str, text: str) -> Layer:
    """A site's layer from its text: `#cloud-config` and a mapping, a script (`#!`), CernVM's context (`[`).

    Raises BootstrapError, one sentence that names the layer, for anything else.
    """
    if text.startswith(("#!", "[")):
        return Layer(name, text)
    if text.split("\n", 1)[0].rstrip() != _HEADER:
        raise BootstrapError(
            f"bootstrap layer '{name}': its first line must be '{_HEADER}', or start with '#!' for a script"
        )
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BootstrapError(f"bootstrap layer '{name}' is no YAML: {_where(error)}") from error
    if content is None:
        content = {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise BootstrapError(f"bootstrap layer '{name}' must be a mapping of cloud-config keys")
    return Layer(name, content)


def compose(layers: Iterable[Layer], *, limit: int = EC2_LIMIT, cernvm: bool = False) -> bytes:
    """The layers as user-data: one `#cloud-config` where that says it all, else a MIME multi-part.

    Compressed where that is smaller; each part by itself where only that fits, and with `cernvm`, because
    CernVM's boot loader and amiconfig search the plain text for what is theirs. The same layers give the
    same bytes. Raises BootstrapError where layers contradict each other, or where the result has more than
    `limit` bytes.
    """
    layers = tuple(layers)
    parts = _parts(layers)
    if cernvm:
        result = _multipart(parts, packed=True)
    else:
        single = len(parts) == 1 and not isinstance(parts[0].content, str)
        plain = render(parts[0]).encode() if single else _multipart(parts)
        result = min(plain, gzip.compress(plain, mtime=0), key=len)
        if len(result) > limit and not single:
            # What MIME sends as base64 is hard to compress afterwards.
            result = min(result, _multipart(parts, packed=True), key=len)
    if len(result) > limit:
        raise BootstrapError(_too_large(layers, len(result), limit))
    return result


def merge(layers: Sequence[Layer]) -> dict[str, Any]:
    """The cloud-config of all these layers as one mapping, by the rules at the head of this module."""
    merged: dict[str, Any] = {}
    for layer in layers:
        if isinstance(layer.content, str):
            raise BootstrapError(f"bootstrap layer '{layer.name}' is no cloud-config and cannot be merged")
        merged = _merge_mapping(merged, layer.content, layer.name, "")
    return merged


class _Dumper(yaml.SafeDumper):
    """The safe one, with texts of several lines written as lines, so that people can read the result."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Where such a block can't carry the text exactly, the emitter falls back to quotes by itself.
    style = "|" if "\n" in text.rstrip("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def render(layer: Layer) -> str:
    """The text of one part: a script as it is, cloud-config as YAML under its header."""
    if isinstance(layer.content, str):
        return layer.content
    body: str = yaml.dump(dict(layer.content), Dumper=_Dumper, sort_keys=False, default_flow_style=False)
    return f"{_HEADER}\n{body}"


def _parts(layers: Sequence[Layer]) -> list[Layer]:
    """The merged cloud-config first, then what stays apart, in order."""
    together = [layer for layer in layers if not _stays_apart(layer)]
    apart = [layer for layer in layers if _stays_apart(layer)]
    if together or not apart:
        return [Layer("cloud-config", merge(together)), *apart]
    return apart


def _stays_apart(layer: Layer) -> bool:
    """Scripts, contexts, and cloud-config that says itself how it is to be merged."""
    return isinstance(layer.content, str) or not {"merge_how", "merge_type"}.isdisjoint(layer.content)


def _merge_mapping(old: Mapping[str, Any], new: Mapping[str, Any], layer: str, path: str) -> dict[str, Any]:
    result = dict(old)
    for key, value in new.items():
        result[key] = _merge_value(result[key], value, layer, f"{path}{key}") if key in result else value
    return result


def _merge_value(old: Any, new: Any, layer: str, path: str) -> Any:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return _merge_mapping(old, new, layer, f"{path}.")
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *new]
    if _shape(old) != _shape(new):
        raise BootstrapError(
            f"bootstrap layer '{layer}': '{path}' is {_shape(new)} here and {_shape(old)} in an earlier layer"
        )
    return new


def _shape(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a single value"


def _multipart(parts: Sequence[Layer], packed: bool = False) -> bytes:
    texts = [render(part) for part in parts]
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    message = MIMEMultipart("mixed", boundary=f"=={digest[:16]}==")
    for index, (part, text) in enumerate(zip(parts, texts, strict=True)):
        piece = _piece(part, text, packed)
        del piece["MIME-Version"]  # the whole has it
        # cloud-init names the file after it and runs scripts in the order of their names.
        piece.add_header("Content-Disposition", "attachment", filename=f"part-{index:03}")
        message.attach(piece)
    return message.as_bytes()


def _piece(part: Layer, text: str, packed: bool) -> MIMENonMultipart:
    if part.is_context:
        return MIMEText(text, "amiconfig", "us-ascii" if _plain(text) else "utf-8")
    if packed:
        # cloud-init unpacks it and sees by its first line what it is.
        piece = MIMENonMultipart("application", "x-gzip")
        coded = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        piece.set_payload("\n".join(textwrap.wrap(coded, _LONGEST_LINE)))
        piece["Content-Transfer-Encoding"] = "base64"
        return piece
    subtype = "x-shellscript" if part.is_script else "cloud-config"
    return MIMEText(text, subtype, "us-ascii" if _plain(text) else "utf-8")


def _plain(text: str) -> bool:
    """Can it be sent as it is? What MIME might change on the way is sent as base64 instead."""
    return text.isascii() and "\r" not in text and max(map(len, text.split("\n"))) < _LONGEST_LINE


def _where(error: yaml.YAMLError) -> str:
    """Where the YAML is wrong, without the text around it, which may hold secrets."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


def _too_large(layers: Sequence[Layer], size: int, limit: int) -> str:
    sizes = sorted(((len(render(layer).encode()), layer.name) for layer in layers), reverse=True)
    biggest = ", ".join(f"'{name}' ({count} bytes before compression)" for count, name in sizes[:3])
    return (
        f"the user-data has {size} bytes, compressed, and the cloud takes {limit}: "
        f"make the biggest layers smaller: {biggest}"
    )
