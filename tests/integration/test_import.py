"""A worker's script from elastiq's days, imported, on a real machine: it joins, and the script has run."""

import base64
import tomllib
from collections.abc import Callable
from pathlib import Path

import tomlkit

from tests.rigs.pools.realpool import settings, until
from updraft import importers
from updraft.clouds.local import process
from updraft.demo.pool import RealPool, Wishes

SCRIPT = """\
#!/bin/bash
cat > /etc/condor/condor_config.local <<CONF
CONDOR_HOST = %ipv4%
UID_DOMAIN = *
CONF
cat <<'END' > /etc/condor/config.d/Group
SEC_DEFAULT_AUTHENTICATION_METHODS = password
END
condor_store_cred -p 12345 -f /etc/condor/pool_password add
service condor start
echo "%ipv4% %fqdn% %path%" > /var/tmp/heads-address
"""


def imported_layers(folder: Path) -> str:
    """The tables of the layers that an import of this script comes to, for the class `worker`."""
    old = folder / "elastiq.conf"
    old.write_text(f"[ec2]\nuser_data_b64 = {base64.b64encode(SCRIPT.encode()).decode()}\n")
    made = tomllib.loads(importers.run([old]).toml)
    (layer,) = made["classes"]["default"]["layers"]
    variables = tomlkit.inline_table()
    variables.update(layer.pop("variables"))
    return "\n[[classes.worker.layers]]\n" + tomlkit.dumps({**layer, "variables": variables})


def test_an_imported_script_runs_on_a_worker_that_joins(
    real_pool: Callable[..., RealPool], tmp_path: Path
) -> None:
    layers = imported_layers(tmp_path).replace("{", "{{").replace("}", "}}")
    pool = real_pool(Wishes(settings=settings(worker={"min": 1}, more=layers)))

    def joined() -> str:
        rows = pool.show("machines")["machines"]
        return next((row["id"] for row in rows if row["phase"] == "joined"), "")

    worker = until(joined, 150, "the worker joined")  # longer than its boot deadline
    said = process.run_in(pool.cloud, worker, ["cat", "/var/tmp/heads-address"]).stdout.split()
    head = next(row for row in pool.cloud.client().machines() if row["id"] == pool.head)
    assert said[0] == head["address"]
    assert said[1].startswith(head["name"])
    assert said[2] == "%path%", "what isn't a variable stays"
