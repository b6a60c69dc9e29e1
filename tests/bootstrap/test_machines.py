"""The user-data of workers and heads: valid for cloud-init, true to the spec, and careful with secrets."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.reading import TOKEN, cloud_config, parts, plain, worker, written
from updraft.bootstrap import HeadSpec, Layer, head_user_data, parse_layer, quick, worker_user_data
from updraft.bootstrap.head.transforms import FILE, GROUPS_FILE, groups_config, guarded, schedd_config
from updraft.bootstrap.layers import EC2_LIMIT
from updraft.bootstrap.worker.install import Install
from updraft.bootstrap.worker.userdata import worker_config
from updraft.condor import base
from updraft.config.values.attributes import is_taken
from updraft.core.model import CloudOffer, Variant
from updraft.core.slots.terms import LABEL, RESTRICTIVE, TAKES, says, takes
from updraft.errors import BootstrapError

SCHEMA = json.loads((Path(__file__).parent / "data" / "schema-cloud-config-v1.json").read_text())
SHIPPED = Path(str(files("updraft.bootstrap").joinpath("files")))
CONFIG = "/etc/condor/config.d/90-updraft.conf"
HEAD = HeadSpec(
    trust_domain="pool.test", uid_domain="pool.test", users=("alice",), controller_config="[pool]\n"
)


def settings(data: bytes) -> dict[str, str]:
    """HTCondor's configuration as written, by name."""
    text = written(data)[CONFIG]["content"].replace("\\\n", "")
    return dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)


@pytest.mark.parametrize("data", [worker_user_data(worker()), head_user_data(HEAD)], ids=["worker", "head"])
def test_cloud_init_would_take_it(data: bytes) -> None:
    jsonschema.Draft4Validator(SCHEMA).validate(cloud_config(data))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SCHEMA).validate(cloud_config(data) | {"write_files": "x"})


def test_there_is_room_for_the_sites_layers() -> None:
    half = EC2_LIMIT // 2
    assert len(worker_user_data(worker())) < half + 512, "half of what EC2 takes, and a little"
    assert len(head_user_data(HEAD)) < half


def test_the_token_is_in_one_file_of_root_and_nowhere_else() -> None:
    data = worker_user_data(worker())
    holders = [path for path, entry in written(data).items() if TOKEN in entry["content"]]
    assert holders == ["/etc/condor/tokens.d/updraft"]
    assert written(data)[holders[0]]["permissions"] == "0600"
    assert plain(data).count(TOKEN.encode()) == 1
    assert TOKEN not in repr(worker())


def test_a_value_that_is_refused_does_not_show_the_token() -> None:
    with pytest.raises(BootstrapError) as caught:
        worker_user_data(worker(token=f"{TOKEN}\nsecond"))
    assert TOKEN not in str(caught.value)
    with pytest.raises(BootstrapError) as caught:
        worker_user_data(worker(), limit=100)
    assert TOKEN not in str(caught.value)


def test_the_worker_advertises_the_names_that_the_pool_reads() -> None:
    made = worker(attributes={"HasCVMFS": "true"}, variant=Variant(image="i2"), price=0.25, identity="0a")
    found = settings(worker_user_data(made))
    names = {value for name, value in vars(base).items() if name.startswith("ATTR_")}
    advertised = set(found["STARTD_ATTRS"].split()) - {"$(STARTD_ATTRS)"}
    offer = CloudOffer(made.cloud, made.zone, made.flavor, made.market, made.sold, made.price)
    terms = {TAKES, *says(offer, made.image, made.worker_class, made.variant)}
    assert advertised == names | terms | {"HasCVMFS"}
    assert advertised - {base.ATTR_INSTANCE} <= set(found)
    assert found[base.ATTR_LAUNCH] == '"L1"'
    assert base.ATTR_INSTANCE in str(cloud_config(worker_user_data(worker()))["bootcmd"])


@pytest.mark.parametrize("universes", [(), ("docker",), ("apptainer",)])
def test_a_site_can_not_name_an_attribute_like_a_setting_of_ours(universes: tuple[str, ...]) -> None:
    spec = worker(static_slots=2, cpus=2, memory=100, install=Install(universes=universes))
    joined = worker_config(spec).replace("\\\n", "")
    ours = {line.partition(" =")[0].rpartition(".")[2] for line in joined.splitlines() if line}
    assert {name for name in ours if not is_taken(name)} == {LABEL}  # which a site may say otherwise


@pytest.mark.slow
@given(st.text(max_size=30))
def test_no_name_escapes_from_its_string(name: str) -> None:
    try:
        text = worker_config(worker(flavor=name)).replace("\\\n", "")
    except BootstrapError:
        assert re.search(r'["\\\x00-\x1f\x7f]', name)
        return
    lines = (line.partition(" =") for line in text.split("\n"))
    value = next(value.removeprefix(" ") for key, _, value in lines if key == "UpdraftFlavor")
    assert value == '"' + name.replace("$", "$(DOLLAR)") + '"'


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"a b": "1"}, "no name for a machine attribute"),
        ({"UpdraftPool": '"other"'}, "is taken"),
        ({"Start": "false"}, "is taken"),
        ({"Fine": "1\nSTART = False"}, "one line"),
        ({"Fine": " "}, "one line"),
        ({"Fine": "x\\"}, "one line"),
    ],
)
def test_attributes_of_a_site_cannot_be_anything_else(attributes: dict[str, str], sentence: str) -> None:
    with pytest.raises(BootstrapError, match=sentence):
        worker_user_data(worker(attributes=attributes))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"collectors": ()}, "at least one collector"),
        ({"collectors": ("head:99999",)}, "host:port"),
        ({"collectors": ("head\nSTART = False",)}, "host:port"),
        ({"trust_domain": "a b"}, "trust domain"),
        ({"uid_domain": "x\ny"}, "UID domain"),
        ({"token": " "}, "a token"),
        ({"static_slots": 0}, "1 or more"),
        ({"job_lease": 600, "head_gone_after": 599}, "less than the job lease"),
    ],
)
def test_a_worker_that_cannot_be_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BootstrapError, match=sentence):
        worker_user_data(worker(**changes))


def test_slots_are_one_that_parts_or_so_many_alike() -> None:
    assert settings(worker_user_data(worker()))["SLOT_TYPE_1_PARTITIONABLE"] == "True"
    static = settings(worker_user_data(worker(static_slots=4, resources={"FPGAs": 8})))
    assert static["MACHINE_RESOURCE_FPGAs"] == "8"
    assert (static["NUM_SLOTS_TYPE_1"], static["SLOT_TYPE_1"]) == ("4", "1/4")
    assert static["SLOT_TYPE_1_PARTITIONABLE"] == "False"


def test_a_job_may_run_for_as_long_as_its_machine_may_live() -> None:
    found = settings(worker_user_data(worker(lifetime=86400.5, drain_deadline=600, vacate_time=30)))
    # A drain evicts a job whose retirement has no more left than the time to vacate.
    assert found["MAXJOBRETIREMENTTIME"] == "87031"
    assert found["MachineMaxVacateTime"] == "30"


def test_the_guard_is_told_what_the_spec_says() -> None:
    data = worker_user_data(worker(collectors=("head", "[fd00::2]:9700"), lifetime=77.0))
    told = json.loads(written(data)["/etc/updraft/agent.json"]["content"])["guard"]
    assert told["heads"] == [["head", 9618], ["fd00::2", 9700]]
    assert told["settings"]["lifetime"] == 77.0


def test_the_sites_layers_come_before_the_start_of_htcondor() -> None:
    site = parse_layer("site", "#cloud-config\nruncmd: [mount-software]\nbootcmd: [early]\n")
    script = Layer("script", "#!/bin/sh\necho hello\n")
    data = worker_user_data(worker(layers=(site, script)))
    first, [*_, last] = cloud_config(data)["runcmd"]
    assert first == "mount-software"
    assert last.endswith("; sh /usr/local/lib/updraft/boot")
    assert cloud_config(data)["bootcmd"][1:] == ["early"]
    assert parts(data)[1] == ("text/x-shellscript", "#!/bin/sh\necho hello\n")


@pytest.mark.parametrize("data", [worker_user_data(worker()), head_user_data(HEAD)], ids=["worker", "head"])
def test_what_the_last_step_looks_for_is_the_last_file_of_ours(data: bytes) -> None:
    config = cloud_config(data)
    assert config["write_files"][-1]["path"] == "/etc/updraft/boot.conf"
    assert config["runcmd"][-1][-1].startswith("[ -s /etc/updraft/boot.conf ] || ")


def test_each_set_of_user_data_is_the_same_twice() -> None:
    assert worker_user_data(worker()) == worker_user_data(worker())
    assert head_user_data(HEAD) == head_user_data(HEAD)


def test_the_head_lets_workers_advertise_and_nothing_else() -> None:
    found = settings(head_user_data(HEAD))
    assert found["COLLECTOR.ALLOW_ADVERTISE_STARTD"].split()[-1] == "worker-*@pool.test"
    assert [name for name, value in found.items() if "worker-" in value] == [
        "COLLECTOR.ALLOW_ADVERTISE_STARTD",
        "COLLECTOR.ALLOW_ADVERTISE_MASTER",
        "COLLECTOR.COLLECTOR_REQUIREMENTS",  # a condition, no right
        "SCHEDD.DENY_READ",
    ]
    assert "STARTD" not in found["DAEMON_LIST"]


def test_a_collector_that_is_silent_for_minutes_is_ended_by_its_master() -> None:
    assert settings(head_user_data(HEAD))["COLLECTOR_NOT_RESPONDING_TIMEOUT"] == "180"
    alone = settings(head_user_data(replace(HEAD, roles=("submit",), condor_host="head.pool.test")))
    assert "COLLECTOR_NOT_RESPONDING_TIMEOUT" not in alone


def test_a_quick_head_negotiates_often() -> None:
    assert settings(head_user_data(quick(HEAD)))["NEGOTIATOR_INTERVAL"] == "5"
    assert settings(head_user_data(HEAD))["NEGOTIATOR_INTERVAL"] == "60"


def test_the_head_runs_the_controller_where_it_is_asked_to() -> None:
    with_it, without = written(head_user_data(HEAD)), HeadSpec(trust_domain="a.b", uid_domain="a.b")
    assert with_it["/etc/updraft/updraft.toml"]["permissions"] == "0600"
    assert "UNITS=updraft.service" in with_it["/etc/updraft/boot.conf"]["content"]
    assert "/etc/updraft/updraft.toml" not in written(head_user_data(without))
    assert "UNITS=''" in written(head_user_data(without))["/etc/updraft/boot.conf"]["content"]


@pytest.mark.parametrize(
    "changes", [{"users": ("root:x",)}, {"users": ("A",)}, {"updraft": "x; reboot"}, {"updraft": "/a b"}]
)
def test_a_head_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BootstrapError):
        head_user_data(HeadSpec(**({"trust_domain": "a.b", "uid_domain": "a.b"} | changes)))


SCRIPTS = sorted(path.name for path in SHIPPED.glob("*.sh"))


def test_there_are_scripts() -> None:
    assert {"boot.sh", "close-metadata.sh", "each-boot.sh", "early.sh", "install.sh"} <= set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_scripts(name: str) -> None:
    checks = [["sh", "-n"]]
    if shutil.which("shellcheck"):
        checks.append(["shellcheck", "--shell=sh", "--exclude=SC1091"])
    for check in checks:
        done = subprocess.run([*check, SHIPPED / name], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["updraft.service", "updraft-door.service", "updraft-agent.service"])
def test_units_are_units(name: str, tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze here")
    unit = tmp_path / name
    # The program isn't where the unit expects it, on a machine that only tests.
    unit.write_text((SHIPPED / name).read_text().replace("/usr/local/bin/updraft", "/bin/true"))
    done = subprocess.run(
        [verify, "verify", "--man=no", str(unit)], check=False, capture_output=True, text=True
    )
    about = [line for line in done.stderr.splitlines() if str(unit) in line or line.startswith(name)]
    assert about == []


@pytest.mark.integration
def test_routing_rules_close_the_metadata_address_to_all_but_root_and_nothing_else(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2")
    probe = tmp_path / "probe.sh"
    probe.write_text(
        f"""set -e
mount -t tmpfs none /run
ip link set lo up
ip link add one type veth peer name two
ip addr add 10.9.9.1/24 dev one; ip link set one up; ip link set two up
ip route add default via 10.9.9.2
sh {SHIPPED}/close-metadata.sh
sh {SHIPPED}/close-metadata.sh
for who in 0 1000; do for to in 169.254.169.254 10.9.9.7; do
    ip route get $to uid $who >/dev/null 2>&1 && echo "$who $to open" || echo "$who $to closed"
done; done
ip route get 169.254.169.254 from 10.9.9.5 iif one >/dev/null 2>&1 && echo forwarded || echo not forwarded
for who in 0 1000; do for to in fe80::a9fe:a9fe fe80::7; do
    ip -6 route get $to oif one uid $who >/dev/null 2>&1 && echo "$who $to open" || echo "$who $to closed"
done; done
ip rule show | grep -c 169.254
ip -6 rule show | grep -cE 'a9fe|ec2'
"""
    )
    done = subprocess.run(["unshare", "-nm", "sh", str(probe)], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "0 169.254.169.254 open",
        "0 10.9.9.7 open",
        "1000 169.254.169.254 closed",
        "1000 10.9.9.7 open",
        "not forwarded",
        "0 fe80::a9fe:a9fe open",
        "0 fe80::7 open",
        "1000 fe80::a9fe:a9fe closed",
        "1000 fe80::7 open",
        "3",
        "6",
    ]


def test_a_head_gives_jobs_with_terms_their_requirements_and_puts_no_text_of_theirs_into_it() -> None:
    text = written(head_user_data(HEAD))[f"/etc/condor/config.d/{FILE}"]["content"]
    assert text == schedd_config()
    _, *rules = text.partition("@=end")[2].partition("@end")[0].split("\n  ")
    assert [rule.split()[0] for rule in rules] == ["REQUIREMENTS", "COPY", "SET"]
    assert "$" not in "".join(rules)  # a macro of theirs would be read
    for name in RESTRICTIVE:
        assert f"{name} isnt undefined" in rules[0]
        assert f"MY.{name}" in rules[2]


def test_a_head_refuses_groups_that_are_not_their_users() -> None:
    text = written(head_user_data(HEAD))[f"/etc/condor/config.d/{GROUPS_FILE}"]["content"]
    assert text == groups_config()
    rules = text.partition("@=end")[2].partition("@end")[0]
    assert "$" not in rules  # a macro of theirs would be read
    said = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    assert guarded(said["SUBMIT_REQUIREMENT_NAMES"].split(), said["IMMUTABLE_JOB_ATTRS"].split())
    assert not guarded(said["SUBMIT_REQUIREMENT_NAMES"].split(), ())
    assert not guarded((), said["IMMUTABLE_JOB_ATTRS"].split())


def test_the_last_file_of_a_worker_adds_the_terms_to_whatever_start_is_set() -> None:
    files = [path for path in written(worker_user_data(worker())) if path.startswith("/etc/condor/config.d/")]
    (last,) = [path for path in files if path == max(files)]
    assert (
        written(worker_user_data(worker()))[last]["content"] == "START = ($(START:True)) && MY.UpdraftTakes\n"
    )


def test_no_line_of_a_workers_configuration_makes_its_user_data_large() -> None:
    """One that MIME can't send as it is doubles all of it. HTCondor joins what is parted."""
    text = worker_config(worker())
    assert max(map(len, text.split("\n"))) < 900
    (joined,) = (line for line in text.replace("\\\n", "").split("\n") if line.startswith("UpdraftTakes ="))
    assert joined == f"UpdraftTakes = {takes()}".replace("$", "$(DOLLAR)")
