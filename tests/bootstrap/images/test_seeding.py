"""The user-data of a machine that becomes a seed image: what it puts in, and that it knows of no pool."""

import subprocess
from pathlib import Path

import pytest

from tests.rigs.reading import cloud_config, written
from updraft.bootstrap import Install, Layer, compose
from updraft.bootstrap.head.source import WHEEL
from updraft.bootstrap.images.seeding import SeedSpec, seed_layers
from updraft.bootstrap.machine import shipped
from updraft.errors import UsageError

WHEEL_AT = f"https://wheels.test/{WHEEL}#sha256={'ab' * 32}"
SPEC = SeedSpec(install=Install(version="25.x"), source=WHEEL_AT)


def told(spec: SeedSpec = SPEC) -> dict[str, str]:
    return {path: str(one["content"]) for path, one in written(compose(seed_layers(spec))).items()}


def test_it_puts_in_htcondor_and_updraft_and_then_cleans() -> None:
    files = told()
    assert f"SOURCE='{WHEEL_AT}'" in files["/etc/updraft/boot.conf"]
    assert "25." in files["/etc/updraft/install.conf"]
    order = ["updraft/install", "updraft/get-updraft", "disable condor.service", "updraft-bake.service"]
    places = [files["/usr/local/lib/updraft/seed"].rindex(one) for one in order]
    assert places == sorted(places)
    assert '"gone_after": null' in files["/etc/updraft/bake.json"]


def test_it_knows_of_no_pool() -> None:
    files = told()
    assert not [path for path in files if "condor" in path or path.endswith(".toml")]


def test_the_machine_powers_itself_off_should_nobody_end_it() -> None:
    config = cloud_config(compose(seed_layers(SPEC)))
    assert any("shutdown -P +240" in " ".join(step) for step in config["bootcmd"])


def test_layers_of_the_site_come_before_the_cleaning() -> None:
    layer = Layer("ours", {"runcmd": [["our-step"]]})
    config = cloud_config(compose(seed_layers(SeedSpec(layers=(layer,)))))
    assert config["runcmd"][0] == ["our-step"]
    assert config["runcmd"][-1][-1].endswith("/seed")


@pytest.mark.parametrize(
    "source", ["--pre", "updraft==1.0", f"http://wheels.test/{WHEEL}#sha256={'ab' * 32}"]
)
def test_a_source_that_could_be_anothers_is_refused(source: str) -> None:
    with pytest.raises(UsageError, match="no address of a wheel"):
        seed_layers(SeedSpec(source=source))


def test_the_script_is_right_and_says_why_it_fails(tmp_path: Path) -> None:
    script = tmp_path / "seed"
    script.write_text(shipped("seed.sh"))
    assert subprocess.run(["/bin/sh", "-n", script], check=False).returncode == 0
    done = subprocess.run(
        ["/bin/sh", script], capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)}
    )
    assert done.returncode == 1
    assert done.stdout.startswith("updraft-boot: FAILED: the image has no HTCondor")
