"""Pictures of the page, for the docs: `python -m tests.rigs.web.screenshots FOLDER` (`make screenshots`).

They show the pool with trouble at a moment that never changes, so that they change only when the page does.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from tests.rigs.web.browser import Browser, browser
from tests.rigs.web.serving import LEDGER, opening, served
from tests.rigs.web.troubled import AT, troubled

MOST = 150_000
"""The largest file, in bytes."""
_COLOURS = 128


@dataclass(frozen=True)
class Shot:
    """One picture: its file's name, the address, and what the window is like."""

    name: str
    address: str
    width: int = 1280
    height: int = 1600
    """The most; a page that ends sooner is cut there."""
    scheme: str = "light"


SHOTS = (
    Shot("overview", "/overview"),
    Shot("waiting", "/waiting"),
    Shot("machines", "/machines?gone=1", height=1000),
    Shot("failed", "/machines?failed=1"),
    Shot("cost", "/cost", scheme="dark"),
    Shot("clouds", "/clouds"),
    Shot("log", "/log", height=900),
    Shot("users", "/users"),
    Shot("mine", "/mine?user=alice", height=900),
    Shot("phone", "/overview", width=390, height=1500, scheme="dark"),
)


def take(folder: Path, shots: tuple[Shot, ...] = SHOTS) -> list[Path]:
    """Write these pictures there, each at most MOST bytes large; returns their paths."""
    with tempfile.TemporaryDirectory() as temporary:
        state = Path(temporary)
        troubled(state / LEDGER)
        with served(state, AT) as base, browser(base) as shown:
            shown.stop_clock(AT)
            shown.size(1280)
            shown.go(opening(state, at=AT))
            return [_take(shown, one, folder / f"{one.name}.png") for one in shots]


def _take(shown: Browser, shot: Shot, path: Path) -> Path:
    shown.colours(shot.scheme)
    shown.size(shot.width)
    shown.go(shot.address)
    shown.first_paint()
    shown.wait("!document.querySelector('.chart') || document.querySelector('.chart canvas')")
    bottom = int(shown.run("return document.querySelector('footer').offsetTop"))
    shown.size(shot.width, min(shot.height, bottom + 12))
    shown.shoot(path)
    with Image.open(path) as image:
        image.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            path, optimize=True
        )
    if path.stat().st_size > MOST:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, and may have {MOST}")
    return path


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    take(target)
