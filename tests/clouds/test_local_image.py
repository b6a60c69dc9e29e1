"""How a machine image is built: what of the builder's own surroundings goes into it."""

import os
from pathlib import Path

import pytest

from updraft.clouds.local.images import image

MMDEBSTRAP = '#!/bin/sh\nfor root; do :; done\nmkdir -p "$root/etc" && env >"$root/etc/surroundings"\n'


def test_packages_see_nothing_of_the_builders_own_htcondor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package asks HTCondor's tools where its log folder is, and makes that one."""
    tool = tmp_path / "bin/mmdebstrap"
    tool.parent.mkdir()
    tool.write_text(MMDEBSTRAP)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    monkeypatch.setenv("_condor_LOG", "/nowhere")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(image, "_SPACE_NEEDED", 0)
    monkeypatch.setattr(image, "_updraft_layers", lambda *_: ())
    made = image.build(tmp_path / "store")
    seen = dict(
        line.partition("=")[::2] for line in (made.rootfs / "etc/surroundings").read_text().splitlines()
    )
    assert {"CONDOR_CONFIG", "_condor_LOG"}.isdisjoint(seen)
    assert seen["http_proxy"] == "http://proxy.example:3128"
