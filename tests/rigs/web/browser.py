"""Chromium without a window, as a test looks at a page: sizes, colours, times, faults; nothing is fetched."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import deadline

AXE = Path(__file__).parents[2] / "web" / "vendored" / "axe.min.js"
SERIOUS = ("serious", "critical")
HEIGHT = 900
_SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--no-first-run", "--no-proxy-server"),
)
_FIRST_PAINT = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
_WAIT = """
const done = arguments[0];
const look = () => (%s) ? requestAnimationFrame(() => setTimeout(done, 50)) : setTimeout(look, 20);
look();
"""
_REFRESH = """
const done = arguments[0], main = document.getElementById('view'), begun = performance.now();
main.dataset.old = '1';
htmx.ajax('GET', main.getAttribute('hx-get'), {target: '#view', swap: 'innerMorph'}).then(() => {
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun), 0));
});
"""
_FAULTS = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations.map((one) => ({
  id: one.id, impact: one.impact,
  nodes: one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + ' ' + (node.any[0]?.message ?? '')),
}))));
"""


class Browser:
    """A browser that looks at the page at `base`."""

    def __init__(self, driver: Any, base: str) -> None:
        self._driver, self.base = driver, base
        self._width = 0

    def size(self, width: int, height: int = HEIGHT) -> None:
        """The window, in CSS pixels; a narrow one is a phone's."""
        self._width = width
        self._driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )

    def colours(self, scheme: str) -> None:
        """What the person prefers: "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def stop_clock(self, at: float) -> None:
        """In all pages from here on it is this moment."""
        source = f"Date.now = () => {round(at * 1000)};"
        self._driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})

    def go(self, address: str) -> None:
        """Open an address of the page, and wait until it is loaded."""
        self._driver.get(self.base + address)

    def run(self, script: str) -> Any:
        """What a script returns in the page."""
        return self._driver.execute_script(script)

    def first_paint(self) -> float:
        """When the page first showed something, in seconds from the request."""
        self.wait("performance.getEntriesByName('first-contentful-paint').length")
        return float(self.run(_FIRST_PAINT)) / 1000

    def wait(self, condition: str) -> None:
        """Until an expression is true in the page, and a frame was drawn after it."""
        self._driver.execute_async_script(_WAIT % condition)

    def refresh(self) -> float:
        """How long it takes to draw the open page anew, in seconds."""
        return float(self._driver.execute_async_script(_REFRESH)) / 1000

    def said(self) -> list[str]:
        """What the console has said since it was last asked."""
        return [one["message"] for one in self._driver.get_log("browser")]

    def overflow(self) -> int:
        """How many pixels the body is wider than the window."""
        # Not than `innerWidth`, which on a phone grows with what doesn't fit.
        return int(self.run("return document.documentElement.scrollWidth")) - self._width

    def faults(self) -> list[str]:
        """What keeps people out, of the serious kinds, as axe-core finds it."""
        # Past the content policy, which lets no script in, by the debugger's own way.
        self._driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
        found = self._driver.execute_async_script(_FAULTS)
        return [json.dumps(one) for one in found if one["impact"] in SERIOUS]

    def shoot(self, path: Path) -> None:
        """Write what the window shows as a PNG."""
        self._driver.save_screenshot(str(path))


@contextmanager
def browser(base: str) -> Iterator[Browser]:
    """A browser for the page at `base`; the test is skipped where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium isn't here: tools/prerequisites chromium installs it")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in _SWITCHES:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(driver))
    try:
        made.set_script_timeout(deadline(30))
        yield Browser(made, base)
    finally:
        made.quit()
