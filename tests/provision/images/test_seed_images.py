"""How a seed image is made, whatever goes wrong: the machine is always ended, and half an image is none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.reading import plain
from updraft.app import wiring
from updraft.bootstrap.head import source
from updraft.bootstrap.head.source import WHEEL
from updraft.cli import main
from updraft.cli.heads import image as headimage
from updraft.clouds.base import TAG_CLASS, TAG_POOL
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Fault, Site, site_settings
from updraft.config.model import CloudTable, Settings
from updraft.provision.images.waiting import Watch

SETTINGS = """\
[pool]
name = "demo"
[clouds.here]
driver = "fake"
[classes.default]
image = "debian"
"""
WHEEL_AT = f"https://wheels.test/{WHEEL}#sha256={'ab' * 32}"
FOUND = "updraft-image: FAILED: it holds what an image must not carry: /root/.aws/credentials (credentials"
Capture = pytest.CaptureFixture[str]


class World:
    def __init__(self) -> None:
        self.now = 1e9
        self.console = "updraft-image: READY\n"
        self.site = Site("here", site_settings("here", {"images": ["debian"]}), lambda: self.now)

    def sleep(self, seconds: float) -> None:
        self.now += 30 * seconds

    def left(self) -> list[Any]:
        return [one for one in self.site.alive("demo.images") if one.stop_asked_at > self.now]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    (tmp_path / "updraft.toml").write_text(SETTINGS)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))

    def driver(settings: Settings, _name: str, _cloud: CloudTable) -> Cloud:
        found = FakeCloud(made.site, settings.pool.name)
        found.console = lambda _machine: made.console  # type: ignore[method-assign]
        return found.cloud

    monkeypatch.setattr(wiring, "make_cloud", driver)
    monkeypatch.setattr(source, "own_source", lambda: WHEEL_AT)
    monkeypatch.setattr(headimage, "watch", lambda: Watch(lambda: made.now, made.sleep, 2.0))
    return made


def bake(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main.call(["head", "image", "--name", "seed", *words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def test_a_seed_image_comes_to_be_and_its_machine_goes(world: World, capsys: Capture) -> None:
    code, out, err = bake(capsys)
    assert code == 0, err
    (image,) = (one.image for one in world.site.made.values())
    assert (image.info.name, image.pool, image.tags["updraft:from"]) == ("seed", "demo", "debian")
    assert "updraft head launch NAME --cloud here --image seed --condor image --source image" in out
    (machine,) = world.site.instances.values()
    assert (machine.tags[TAG_POOL], machine.tags[TAG_CLASS]) == ("demo.images", "head-image")
    assert not world.left()


def test_its_machine_is_told_nothing_of_the_pool(world: World, capsys: Capture) -> None:
    bake(capsys)
    (machine,) = world.site.instances.values()
    told = plain(machine.user_data).decode()
    assert "updraft-bake" in told
    assert f"SOURCE='{WHEEL_AT}'" in told
    assert "updraft.toml" not in told
    assert "[pool]" not in told


def breaks(world: World) -> None:
    world.console = ""
    world.site.change(boots=[{"breaks": 1.0, "fault": "no host"}])


@pytest.mark.parametrize(
    ("arrange", "why"),
    [
        (lambda w: setattr(w, "console", FOUND), "/root/.aws/credentials"),
        (lambda w: setattr(w, "console", "updraft-boot: FAILED: no package"), "no package"),
        (lambda w: setattr(w, "console", "still at it"), "is prepared and cleaned: not within"),
        (breaks, "no host"),
        (lambda w: w.site.faults.add(Fault("cloud-unavailable", call="launch", after=True)), ""),
        (lambda w: w.site.change(image_takes="9000s"), "in the making: not within"),
    ],
    ids=["secret", "boot", "silence", "machine", "lost answer", "image"],
)
def test_whatever_fails_the_machine_is_ended_and_there_is_no_image(
    world: World, capsys: Capture, arrange: Callable[[World], object], why: str
) -> None:
    arrange(world)
    code, _, err = bake(capsys)
    assert code == 1
    assert why in err
    assert not world.left()
    assert not world.site.made


def test_a_name_that_is_taken_costs_no_machine(world: World, capsys: Capture) -> None:
    bake(capsys)
    assert bake(capsys)[0] == 2
    assert len(world.site.instances) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--flavor", "huge"), "no machine of flavor huge"),
        (("--cloud", "there"), "no cloud there"),
        (("--source", "--pre"), "no address of a wheel"),
        (("--source", "updraft==0.1.0"), "no address of a wheel"),
        (("--index", "http://mirror.test/simple"), "package index"),
    ],
)
def test_wrong_calls_make_nothing(world: World, capsys: Capture, words: tuple[str, str], why: str) -> None:
    code, _, err = bake(capsys, *words)
    assert code in (1, 2)
    assert why in err
    assert not world.site.instances


def test_without_a_wheel_nothing_is_asked_of_the_cloud(
    world: World, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "own_source", lambda: "")
    code, _, err = bake(capsys)
    assert code == 2
    assert "--source 'https://" in err
    assert not world.site.calls
