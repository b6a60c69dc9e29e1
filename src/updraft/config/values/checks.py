"""Checks of single values that a type alone can't express. Each raises ValueError that says what to write."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from pydantic import ValidationInfo

from updraft.config.values.attributes import IDENTIFIER, is_taken
from updraft.core.slots.kinds import custom_names

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
HEADS, IMAGES = ".heads", ".images"
"""What is put behind a pool's name for machines that are none of its workers."""
CLASSAD_WORDS = frozenset({"true", "false", "undefined", "error"})
INLINE_STARTS = ("#cloud-config", "#!", "[")
HEAD_VARIABLES = ("ipv4", "ipv6", "fqdn")  # a layer's; found at the launch where they have no value
VARIABLE_VALUE = re.compile(r"[A-Za-z0-9._:/@+-]*")
NAME_PATTERN = re.compile(r"[^\x00-\x20\x7f\"'\\$`]([^\x00-\x1f\x7f\"'\\$`]{0,253}[^\x00-\x20\x7f\"'\\$`])?")
VERSION = re.compile(r"[0-9]{2}\.(x|[0-9]{1,3}(\.[0-9]{1,3})?)")
FINGERPRINT = re.compile(r"[0-9A-F]{40}")
REPOSITORY = re.compile(r"(https://|file:///)[A-Za-z0-9._~:/%@+-]+")


def checked_name(name: str) -> str:
    """A name that can be a tag, a file name and a ClassAd text without quoting."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f'"{name}" can\'t be a name; use letters, digits, "-", "_" and ".", at most 63, '
            "beginning with a letter or digit"
        )
    return name


def checked_pool_name(name: str) -> str:
    """A name, and none that another pool's heads or makers of images have in their tags."""
    for end in (HEADS, IMAGES):
        if checked_name(name).endswith(end):
            pool = name.removesuffix(end)
            raise ValueError(
                f'"{name}" can\'t be the name of a pool: that is what the {end[1:]} of a pool "{pool}" are '
                f'tagged with; write "{name.replace(".", "-")}", say'
            )
    return name


def checked_host(host: str) -> str:
    """A host with its port, if any; empty stands for the one that HTCondor's configuration names."""
    if any(sign.isspace() or sign == "/" for sign in host):
        raise ValueError(
            f'"{host}" is not a host; write it as in "head.example.org" or with a port behind ":"'
        )
    return host


def tuple_of_one(value: object) -> object:
    """A list as a tuple; a single text as a tuple of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def checked_price(value: object) -> object:
    """A price per hour; "unknown" becomes None, and stays unknown."""
    if value == "unknown":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError('is not a price; write a plain number per hour, as in 0.12, or "unknown"')
    return float(value)


def checked_image(value: object) -> object:
    """A name or id, or a table with one for each cloud."""
    names = list(value.values()) if isinstance(value, dict) else [value]
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise ValueError("is no image; write its name or id, or a table with one for each cloud")
    return value


def checked_attribute_name(name: str) -> str:
    """A name that a ClassAd attribute may have."""
    if not IDENTIFIER.fullmatch(name):
        raise ValueError(f'"{name}" can\'t be an attribute name; use letters, digits and "_"')
    if is_taken(name):
        raise ValueError(f'"{name}" means something to HTCondor or updraft already; choose another name')
    return name


def checked_resource(name: str) -> str:
    """The name of a custom machine resource."""
    if not custom_names(name):
        raise ValueError(
            f'"{name}" can\'t be a custom resource; use letters, digits and "_", and no name that HTCondor '
            "counts by itself (Cpus, Memory, Disk, Swap, GPUs)"
        )
    return name


def checked_pattern(pattern: str) -> str:
    """A name, or a pattern of names, of things that a job may ask for."""
    if not NAME_PATTERN.fullmatch(pattern):
        raise ValueError(
            f'"{pattern}" can\'t be a name or a pattern here; a name that a job may ask for has no quotes, '
            'backslashes, "$" or control characters'
        )
    return pattern


def checked_expression(given: object) -> object:
    """A ClassAd expression, parsed; numbers and truth values may be written as TOML has them."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int | float):
        return repr(given)
    if not isinstance(given, str):
        raise ValueError("is not a ClassAd expression; write it as a text, a number, true or false")
    if IDENTIFIER.fullmatch(given) and given.lower() not in CLASSAD_WORDS:
        raise ValueError(
            f"{given} without quotes of its own refers to an attribute in a ClassAd; write '\"{given}\"' for "
            f'the text, or "MY.{given}" if the attribute is meant'
        )
    return _parsed(given)


def _parsed(text: str) -> str:
    import classad2  # comes with HTCondor's bindings: slow to load, and few sites set attributes

    if not text.strip():
        raise ValueError("is empty; write a ClassAd expression, '\"\"' for the empty text")
    if "\n" in text.strip() or text.endswith("\\"):
        raise ValueError("is more than one line; write the expression in one")
    try:
        classad2.ExprTree(text)
    except Exception as error:  # the bindings have one class for all that goes wrong, and it isn't public
        raise ValueError(
            f"{text} is not a ClassAd expression; a text needs quotes of its own: '\"…\"'"
        ) from error
    return text


def checked_slots(value: object) -> object:
    """The word "partitionable", or how many static slots."""
    if value == "partitionable" or (type(value) is int and value >= 1):
        return value
    raise ValueError('is neither "partitionable" nor a number of static slots, 1 or more')


def checked_version(version: str) -> str:
    """A version of HTCondor, or a series of them; empty stands for the head's."""
    if version and not VERSION.fullmatch(version):
        raise ValueError(f'"{version}" is no version of HTCondor; write "25.0", "25.x", "25.14" or "25.14.1"')
    return version


def checked_fingerprint(text: str) -> str:
    """The fingerprint of an OpenPGP key, without the blanks that people write into it."""
    short = text.replace(" ", "").upper()
    if not FINGERPRINT.fullmatch(short):
        raise ValueError(f'"{text}" is no fingerprint; `gpg --show-keys` shows the 40 digits')
    return short


def checked_repository(address: str) -> str:
    """Where packages come from: over TLS, or from the image itself."""
    if address and not REPOSITORY.fullmatch(address):
        raise ValueError(f'"{address}" must begin with https://, or with file:/// for a folder of the image')
    return address.rstrip("/")


def checked_layer(given: object, info: ValidationInfo) -> object:
    """A layer with its content: a path beside the configuration is read, an inline text is taken as it is.

    A table says which of the two it means, and which variables the layer has.
    """
    if isinstance(given, dict):
        return _layer_table(given, info)
    if not isinstance(given, str) or not given.strip():
        raise ValueError("is not a text; write a path, or the cloud-config or script itself")
    inline = given.startswith(INLINE_STARTS) or "\n" in given
    return _layer("inline" if inline else given, given if inline else None, info)


def _layer_table(given: Mapping[str, object], info: ValidationInfo) -> object:
    extra = sorted(set(given) - {"file", "text", "variables"})
    if extra:
        raise ValueError(f'has no key "{extra[0]}"; a layer has file or text, and variables')
    file, text = given.get("file"), given.get("text")
    if (file is None) == (text is None) or not isinstance(file if text is None else text, str):
        raise ValueError("needs either file (a path) or text (the cloud-config or script itself)")
    variables = given.get("variables", {})
    if not isinstance(variables, dict):
        raise ValueError('has variables that are no table; write variables = { ipv4 = "" }')
    for name, value in variables.items():
        _checked_variable(name, value)
    found = _layer("inline" if file is None else str(file), None if text is None else str(text), info)
    return {**found, "variables": variables}


def _checked_variable(name: str, value: object) -> None:
    if not IDENTIFIER.fullmatch(name):
        raise ValueError(f'has the variable "{name}"; a name has letters, digits and "_"')
    if not isinstance(value, str) or not VARIABLE_VALUE.fullmatch(value):
        raise ValueError(f"has a value for %{name}% that is not one plain word (letters, digits, ._:/@+-)")
    if not value and name not in HEAD_VARIABLES:
        known = ", ".join(HEAD_VARIABLES)
        raise ValueError(f"has no value for %{name}%; only {known} are found out at the launch")


def _layer(name: str, text: str | None, info: ValidationInfo) -> dict[str, object]:
    base = cast(Path, (info.context or {}).get("base", Path()))
    content = _content(base / name) if text is None else text
    if not content.startswith(INLINE_STARTS):
        raise ValueError(f'the layer ({name}) must begin with "#cloud-config" or "#!", to say what it is')
    return {"name": name, "text": content}


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(
            f"{path} can't be read ({why}); give a path relative to the configuration"
        ) from error
