"""What a driver is found by, and what is said of one that can't be used."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from updraft import config
from updraft.clouds.cloud import Cloud, Driver, Owner, cloud_of, driver_of
from updraft.config import drivers
from updraft.errors import ConfigError, UsageError

SETTINGS = """
[pool]
name = "test"
[clouds.c1]
driver = "{driver}"
[classes.default]
image = "img"
"""
BEFORE = "updraft.clouds.ec2:from_settings"  # what an entry point of before named
NO_DRIVER = "updraft.errors:UsageError"
LACKS = "no_such_library:DRIVER"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"before": BEFORE, "no-driver": NO_DRIVER, "lacks": LACKS, "fake": "updraft.clouds.fake:DRIVER"}
    made = tuple(EntryPoint(name, value, drivers.GROUP) for name, value in entries.items())
    monkeypatch.setattr(drivers, "_installed", lambda: made)


def test_a_driver_is_found_by_its_name(installed: None) -> None:
    assert isinstance(driver_of("fake"), Driver)
    made = cloud_of("here", "fake", Owner("demo"), {"zones": ["z"]})
    assert isinstance(made, Cloud)
    assert (made.name, {one.zone for one in made.machines.offers()}) == ("here", {"z"})


def test_wrong_settings_are_refused_before_anything_is_made(installed: None) -> None:
    with pytest.raises(ConfigError, match=r"clouds\.here\.zoness"):
        cloud_of("here", "fake", Owner("demo"), {"zoness": ["z"]})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", 'there is no driver "none"; installed are before, fake, lacks, no-driver'),
        ("before", "another version of updraft"),
        ("no-driver", "another version of updraft"),
        ("lacks", "can't be loaded: No module named 'no_such_library'"),
    ],
)
def test_one_that_cannot_be_used_is_said_in_a_sentence(installed: None, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        driver_of(name)


@pytest.mark.parametrize("name", ["none", "before", "no-driver"])
def test_a_check_of_the_configuration_names_its_line(installed: None, name: str, tmp_path: Path) -> None:
    file = tmp_path / "updraft.toml"
    file.write_text(SETTINGS.format(driver=name))
    with pytest.raises(ConfigError, match=rf"line 5: clouds\.c1\.driver: .*{name}"):
        config.load(file)


def test_a_check_of_the_configuration_needs_no_library_of_a_cloud(installed: None, tmp_path: Path) -> None:
    file = tmp_path / "updraft.toml"
    file.write_text(SETTINGS.format(driver="lacks"))
    assert config.load(file).clouds["c1"].driver == "lacks"
