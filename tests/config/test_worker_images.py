"""What the configuration says of a worker's image, and what becomes of it: settings, offers, user-data."""

from pathlib import Path
from typing import Any

import pytest

from updraft.app.wiring import installed
from updraft.bootstrap import Install
from updraft.config import load
from updraft.config.tables.worker import WorkerClass
from updraft.errors import ConfigError

BASE = """\
[pool]
name = "p"
[clouds.here]
driver = "fake"
[classes.worker]
image = "img"
"""
KEY = "962a 9bcd d330 245f 2703 c88b 74e5 be22 d4e9 b1fc"


def read(tmp_path: Path, more: str) -> WorkerClass:
    file = tmp_path / "updraft.toml"
    file.write_text(BASE + more)
    return load(file).classes["worker"]


def asked(version: str) -> Any:
    def ask(name: str) -> str:
        assert name == "CONDOR_VERSION"
        return version

    return ask


def refuses(name: str) -> str:
    raise AssertionError(f"{name} was asked for")


def test_an_image_is_taken_as_it_is(tmp_path: Path) -> None:
    assert installed(read(tmp_path, ""), refuses) == Install()


def test_without_a_version_the_heads_is_installed(tmp_path: Path) -> None:
    worker = read(tmp_path, 'condor = "install"\n')
    assert installed(worker, asked("25.14.1")) == Install(version="25.14.1", exactly=False)


def test_a_version_a_mirror_and_a_key_of_the_sites_own(tmp_path: Path) -> None:
    more = f'condor = "install"\ncondor_version = "25.0"\ncondor_keys = "{KEY}"\n'
    more += 'condor_repository = "https://m.test/"\n'
    found = installed(read(tmp_path, more), refuses)
    assert found == Install("25.0", True, "https://m.test", (KEY.replace(" ", "").upper(),))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ('condor_version = "25.0"', 'write condor = "install"'),
        ('condor = "install"\ncondor_version = "latest"', "is no version of HTCondor"),
        ('condor = "install"\ncondor_repository = "http://m.test"', "must begin with https"),
        ('condor = "install"\ncondor_keys = "ABC"', "is no fingerprint"),
        ('universes = ["vm"]', "docker"),
        ('contextualisation = "none"', "cernvm"),
    ],
)
def test_what_cannot_be_is_an_error_of_its_line(tmp_path: Path, more: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read(tmp_path, more + "\n")


def test_a_class_with_docker_is_believed_to_run_it(tmp_path: Path) -> None:
    (tmp_path / "updraft.toml").write_text(
        BASE + 'universes = "docker"\n[classes.worker.attributes]\nHasDocker = false\n'
    )
    settings = load(tmp_path / "updraft.toml")
    attributes = settings.policy().classes["worker"].attributes
    assert attributes["HasContainer"] == "true"
    assert attributes["HasDocker"] == "false"  # the site's own word wins


def test_what_is_installed_makes_a_generation(tmp_path: Path) -> None:
    (tmp_path / "updraft.toml").write_text(BASE)
    before = load(tmp_path / "updraft.toml").generation("worker")
    seen = {before}
    for more in ('condor = "install"', 'universes = "docker"', 'contextualisation = "cernvm"'):
        (tmp_path / "updraft.toml").write_text(BASE + more + "\n")
        seen.add(load(tmp_path / "updraft.toml").generation("worker"))
    assert len(seen) == 4
