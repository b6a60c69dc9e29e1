"""Where a machine gets updraft from: one wheel, held to one build by its hash, over https.

The wheel brings the lock (`run.lock`) with the hashes of everything that it needs. A name is never enough:
whoever owns it in a package index would be root on the head.
"""

import json
import re
from importlib.metadata import PackageNotFoundError, distribution

from updraft import DISTRIBUTION, __version__
from updraft.errors import UsageError

WHEEL = f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl"
IN_IMAGE = "image"
"""What `--source` says where the image has updraft."""

_PLACE = r"(?:https://[A-Za-z0-9.:\[\]-]+|file://)"
_PATH = r"/[A-Za-z0-9._~:/%@+=,&-]*"
_ADDRESS = re.compile(rf"{_PLACE}{_PATH}(?:\?[A-Za-z0-9._~:/%@+=,&-]*)?")
_INDEX = re.compile(rf"(?:https://[A-Za-z0-9.:%@\[\]_-]+|file://){_PATH}")
_HASH = re.compile(r"sha256=[0-9a-f]{64}")
_FORM = f"https://HOST/{WHEEL}#sha256=HASH"


def chosen_source(asked: str, index: str) -> str:
    """The wheel that a machine installs: the one asked for, or that which this updraft was installed from.

    Empty where `asked` says that the image has it. Raises UsageError, with what to give, where neither will
    do.
    """
    source = "" if asked == IN_IMAGE else asked or own_source()
    if not source and asked != IN_IMAGE:
        raise UsageError(
            "a head installs updraft from a wheel known by its hash, and this updraft came from none at an "
            f"https address: give one as --source '{_FORM}' (`make wheel` makes it and says the hash), or "
            f"--source {IN_IMAGE} where the image has updraft"
        )
    checked_source(source, index)
    return source


def own_source() -> str:
    """The wheel that this updraft was installed from, as pip noted it; empty where that isn't at https."""
    try:
        noted = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return ""
    digest = noted.get("archive_info", {}).get("hashes", {}).get("sha256")
    address = str(noted.get("url", ""))
    return f"{address}#sha256={digest}" if digest and address.startswith("https://") else ""


def checked_source(source: str, index: str) -> None:
    """Raises UsageError for a source or an index that could come to be another's; either may be empty."""
    if index and not _INDEX.fullmatch(index):
        raise UsageError(
            "the package index must be an address that begins with https://, or with file:/// for a folder "
            "of wheels on the machine's own disk"
        )
    if not source:
        return
    address, _, digest = source.partition("#")
    shown = address.partition("?")[0]  # what follows may be a signature that lets its reader in
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"the source {shown!r} of updraft is no address of a wheel: give {_FORM}, or file:/// for one on "
            "the machine's own disk; a name alone may be anybody's, and http:// can be changed on the way"
        )
    if not _HASH.fullmatch(digest):
        raise UsageError(
            f"the source {shown!r} of updraft has no hash: add #sha256= and what `sha256sum` says of it"
        )
    if shown.rpartition("/")[2] != WHEEL:
        raise UsageError(f"the source {shown!r} of updraft is not the wheel of this version, {WHEEL}")
