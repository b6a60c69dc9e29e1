"""`updraft import` of Cloud Scheduler's two files and of exports of csv2: what comes of them, all said."""

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from updraft import config, importers
from updraft.cli.main import call
from updraft.clouds.ec2.settings import Settings as Ec2Settings
from updraft.clouds.openstack.settings import Settings as OpenStackSettings
from updraft.config.model import Settings
from updraft.errors import UsageError
from updraft.importers import CLOUD_SCHEDULER, CSV2, Fate
from updraft.importers.formats import jsons
from updraft.importers.formats.reading import read, values
from updraft.importers.output.drafts import CLOUD
from updraft.importers.output.rules import Program
from updraft.importers.programs.cs1_rules import CLOUD_RULES

DATA = Path(__file__).parent / "data"
CS1 = DATA / "cs1"
CSV2_DATA = DATA / "csv2"
MINUTE = 60.0


def made(*paths: Path, pool: str = "") -> importers.Import:
    return importers.run(paths, pool)


def loaded(result: importers.Import, folder: Path) -> Settings:
    (folder / "updraft.toml").write_text(result.toml)
    return config.load(folder / "updraft.toml")


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def texts(result: importers.Import, key: str, *fates: Fate) -> str:
    return " / ".join(row.text for row in result.report.of(*(fates or Fate)) if row.key == key)


def row_of(result: importers.Import, key: str, section: str) -> Fate:
    (found,) = {row.fate for row in result.report.rows if (row.key, row.section) == (key, section)}
    return found


@pytest.fixture(scope="module")
def cs1() -> importers.Import:
    return made(CS1 / "cloud_scheduler.conf")


@pytest.fixture(scope="module")
def csv2() -> importers.Import:
    return made(CSV2_DATA / "clouds.json", CSV2_DATA / "group.json")


# ----------------------------------------------------------------------------------------- Cloud Scheduler 1


def test_an_openstack_cloud_keeps_its_limits_its_rank_and_its_place(
    cs1: importers.Import, tmp_path: Path
) -> None:
    cloud = loaded(cs1, tmp_path).clouds["Alder"]
    assert (cloud.driver, cloud.priority, cloud.limits.machines, cloud.limits.cores) == (
        "openstack",
        1,
        40,
        160,
    )
    own = OpenStackSettings.model_validate(dict(cloud.settings))
    assert (own.os_cloud, own.region, own.zones) == ("Alder", "RegionOne", ("nova",))
    assert (own.networks, own.security_groups) == (("workers",), ("default", "condor"))
    assert (own.key_name, own.flavors) == ("operators", ("c8-30gb",))


def test_the_login_is_shown_as_it_belongs_into_clouds_yaml(cs1: importers.Import) -> None:
    comment = cs1.toml.partition("[clouds.Alder]")[2].partition("driver")[0]
    for line in (
        'auth_url: "https://keystone.alder.example.org:5000/v3"',
        'project_name: "particles"',
        'username: "scheduler"',
        "password: …",
        'cacert: "/etc/pki/alder.pem"',
    ):
        assert line in comment
    assert "version 2" in texts(cs1, "auth_url", Fate.LOOK)


def test_an_ec2_cloud_has_its_endpoint_and_a_profile_of_its_own(
    cs1: importers.Import, tmp_path: Path
) -> None:
    clouds = loaded(cs1, tmp_path).clouds
    birch = Ec2Settings.model_validate(dict(clouds["birch-east"].settings))
    assert birch.endpoint == "https://ec2.birch.example.org:8788/services/Cloud"
    assert (birch.profile, birch.flavors) == ("birch-east", ("m1.xlarge",))
    assert clouds["birch-east"].limits.cores is None, "below 0 is no ceiling"
    amazon = Ec2Settings.model_validate(dict(clouds["amazon"].settings))
    assert (amazon.endpoint, amazon.region, amazon.profile) == (None, "us-west-2", "amazon")
    assert "birch-east" in texts(cs1, "(its name)", Fate.LOOK)


@pytest.mark.parametrize(
    ("kind", "secure", "endpoint"),
    [
        ("Eucalyptus", "true", "https://c.example.org:8773/services/Eucalyptus"),
        ("OpenStack", "false", "http://c.example.org:8773/services/Cloud"),
    ],
)
def test_endpoints_of_ec2(tmp_path: Path, kind: str, secure: str, endpoint: str) -> None:
    text = f"[a]\ncloud_type: {kind}\nhost: c.example.org\nsecure_connection: {secure}\nregions: r\n"
    result = made(written(tmp_path, "cloud_resources.conf", text))
    assert loaded(result, tmp_path).clouds["a"].settings["endpoint"] == endpoint
    assert ("without TLS" in texts(result, "host")) == (secure == "false")


def test_a_cloud_without_a_driver_is_left_out_and_named(cs1: importers.Import, tmp_path: Path) -> None:
    settings = loaded(cs1, tmp_path)
    assert set(settings.clouds) == {"Alder", "birch-east", "amazon"}
    assert row_of(cs1, "cloud_type", "cedar") is Fate.LOOK
    assert row_of(cs1, "secret_file", "cedar") is Fate.SECRET


def test_the_class_is_what_the_jobs_ask_for(cs1: importers.Import, tmp_path: Path) -> None:
    classes = loaded(cs1, tmp_path).classes
    worker, other = classes["analysis"], classes["analysis-20m"]
    assert worker.image == {"Alder": "alma-9-worker", "amazon": "ami-0abc"}
    assert (worker.clouds, other.clouds) == (("Alder", "amazon"), ("birch-east",)), "those of the alias"
    assert (worker.vm_types, worker.networks_allowed) == ((), ("spare-net",))
    assert worker.lifetime == 2880 * MINUTE
    assert worker.boot_deadline == 30 * MINUTE, "to run, and then to register"
    assert worker.keep_alive_max == other.keep_alive_max == 20 * MINUTE


def test_clouds_with_another_keep_alive_have_a_class_of_their_own(
    cs1: importers.Import, tmp_path: Path
) -> None:
    classes = loaded(cs1, tmp_path).classes
    worker, other = classes["analysis"], classes["analysis-20m"]
    assert (worker.idle_limit, other.idle_limit) == (10 * MINUTE, 20 * MINUTE), "never above max_keepalive"
    assert other.vm_types == ("analysis",), "jobs ask for that one"
    assert (other.lifetime, other.boot_deadline) == (worker.lifetime, worker.boot_deadline)
    assert "analysis-20m on birch-east" in texts(cs1, "idle_limit of analysis")


def test_files_that_stand_beside_are_read(cs1: importers.Import) -> None:
    assert "Alder,birch-east" in texts(cs1, "canada", Fate.LOOK)
    assert "HTCondor" in texts(cs1, "user-data", Fate.LOOK), "default.yaml configures the old pool"
    assert 'collector = "pool.example.org:9618"' in cs1.toml


def test_a_users_limit_and_everybodys_priority_hold_on(cs1: importers.Import, tmp_path: Path) -> None:
    settings = loaded(cs1, tmp_path)
    assert {name: user.machines for name, user in settings.users.items()} == {"anna": 5, "b.en@x.org": 12}
    assert settings.pool.high_priority_users == ("*",)


def test_a_vm_type_that_is_no_name_is_advertised_all_the_same(tmp_path: Path) -> None:
    text = (CS1 / "cloud_scheduler.conf").read_text().replace("VMType: analysis", "VMType: cern vm:4")
    worker = loaded(made(written(tmp_path, "cs.conf", text), CS1 / "cloud_resources.conf"), tmp_path)
    assert worker.classes["cern-vm-4"].vm_types == ("cern vm:4",)


def test_files_that_are_not_there_are_asked_for(tmp_path: Path) -> None:
    scheduler = written(
        tmp_path, "cloud_scheduler.conf", "[global]\nuser_limit_file: /etc/l.json\ndefault_yaml: /x/d.yaml\n"
    )
    result = made(scheduler, CS1 / "cloud_resources.conf")
    for key in ("user_limit_file", "default_yaml"):
        assert row_of(result, key, "global") is Fate.LOOK
        assert "name it" in texts(result, key)


def test_a_layer_that_was_named_is_the_classes(tmp_path: Path) -> None:
    result = made(CS1 / "cloud_scheduler.conf", CS1 / "site.yaml")
    (layer,) = loaded(result, tmp_path).classes["analysis"].layers
    assert "files.example.org:/software" in layer.text


def test_the_clouds_alone_are_enough_but_for_the_image(tmp_path: Path) -> None:
    result = made(CS1 / "cloud_resources.conf", pool="here")
    settings = loaded(result, tmp_path)
    assert (settings.pool.name, list(settings.classes)) == ("here", ["default", "default-30m"])
    assert settings.classes["default"].image == "choose-an-image"
    assert "image of default" in {row.key for row in result.report.of(Fate.LOOK)}


def test_a_keep_alive_of_nothing_is_not_an_idle_limit_of_nothing(tmp_path: Path) -> None:
    text = "[a]\ncloud_type: OpenStackNative\nauth_url: https://k.example.org/v3\nvm_keep_alive: 0\n"
    settings = loaded(made(written(tmp_path, "cloud_resources.conf", text)), tmp_path)
    assert settings.classes["default"].idle_limit == 10 * MINUTE


@pytest.mark.parametrize(("more", "told"), [("", 1), ("vm_keep_alive: 5\n", 0), ("vm_keep_alive: 0\n", 0)])
def test_that_machines_now_idle_a_little_is_said_where_no_file_says_how_long(
    more: str, told: int, tmp_path: Path
) -> None:
    text = f"[a]\ncloud_type: OpenStackNative\nauth_url: https://k.example.org/v3\n{more}"
    result = made(written(tmp_path, "cloud_resources.conf", text))
    rows = [row for row in result.report.of(Fate.REPLACED) if row.key == "vm_keep_alive" and not row.file]
    assert len(rows) == told
    assert all('for idle_limit, "10m"' in row.text for row in rows)


def timed(folder: Path, settings: str, cloud: str = "") -> importers.Import:
    text = f"[a]\ncloud_type: OpenStackNative\nauth_url: https://k.example.org/v3\n{cloud}"
    resources = written(folder, "cloud_resources.conf", text)
    return made(resources, written(folder, "cloud_scheduler.conf", f"[global]\n{settings}"))


@pytest.mark.parametrize(
    ("limit", "deadline", "fate"),
    [
        ("15", 15 * MINUTE, Fate.TAKEN),
        ("60", 60 * MINUTE, Fate.TAKEN),
        ("900", 15 * MINUTE, Fate.LOOK),
        ("1800", 30 * MINUTE, Fate.LOOK),
        ("0", 30 * MINUTE, Fate.LOOK),
    ],
)
def test_a_limit_to_register_that_can_be_no_minutes_is_taken_for_seconds(
    limit: str, deadline: float, fate: Fate, tmp_path: Path
) -> None:
    result = timed(tmp_path, f"condor_register_time_limit: {limit}\n")
    assert loaded(result, tmp_path).classes["default"].boot_deadline == deadline
    assert row_of(result, "condor_register_time_limit", "global") is fate
    if limit == "900":
        assert '"15h"' in texts(result, "condor_register_time_limit"), "what the minutes would have been"


@pytest.mark.parametrize("ceiling", ["0", "-5"])
def test_a_keep_alive_that_may_be_nothing_is_said(ceiling: str, tmp_path: Path) -> None:
    result = timed(tmp_path, f"max_keepalive: {ceiling}\n", "vm_keep_alive: 30\n")
    worker = loaded(result, tmp_path).classes["default"]
    assert worker.idle_limit == 10 * MINUTE
    assert worker.keep_alive_max is None, "jobs can only make it shorter"
    assert "idle_limit" in texts(result, "max_keepalive", Fate.REPLACED)


def test_no_lifetime_is_no_lifetime_of_a_second(tmp_path: Path) -> None:
    result = timed(tmp_path, "vm_lifetime: 0\n", "vm_keep_alive: 30\n")
    worker = loaded(result, tmp_path).classes["default"]
    assert (worker.lifetime, worker.idle_limit) == (7 * 24 * 60 * MINUTE, 30 * MINUTE)
    assert '"7d"' in texts(result, "vm_lifetime", Fate.REPLACED)


@pytest.mark.parametrize("cloud", ["", "vm_keep_alive: 30\n"])
def test_a_lifetime_shorter_than_a_keep_alive_comes_to_a_file_that_loads(cloud: str, tmp_path: Path) -> None:
    result = timed(tmp_path, "vm_lifetime: 8\n", cloud)
    worker = loaded(result, tmp_path).classes["default"]
    assert (worker.lifetime, worker.idle_limit) == (8 * MINUTE, 4 * MINUTE)
    assert "over before" in texts(result, "idle_limit of default", Fate.LOOK)


# ------------------------------------------------------------------------------------------------------ csv2


def test_a_cloud_of_csv2_has_the_lower_of_its_ceilings(csv2: importers.Import, tmp_path: Path) -> None:
    clouds = loaded(csv2, tmp_path).clouds
    assert [cloud.limits.cores for cloud in clouds.values()] == [120, None, 0]
    assert [cloud.priority for cloud in clouds.values()] == [0, 5, 9]
    assert [cloud.enabled for cloud in clouds.values()] == [True, False, True]


def test_what_a_cloud_of_csv2_has_not_is_its_groups(csv2: importers.Import, tmp_path: Path) -> None:
    clouds = loaded(csv2, tmp_path).clouds
    alder = OpenStackSettings.model_validate(dict(clouds["alder"].settings))
    birch = OpenStackSettings.model_validate(dict(clouds["birch"].settings))
    assert (alder.networks, birch.networks) == (("workers",), ("group-net",))
    assert (alder.key_name, birch.key_name, birch.flavors) == ("operators", "operators", ("c4-15gb",))
    assert alder.flavors == ("*", "!tiny", "!gpu"), "all but those that are excluded"
    assert [alder.volume_gib(cores) for cores in (1, 8)] == [45, 80], "so much, and so much for each core"
    assert alder.volume_type == "fast"


def test_a_keep_alive_that_csv2_passes_over_is_the_groups(tmp_path: Path) -> None:
    row = {"cloud_type": "openstack", "authurl": "https://k.example.org/v3", "cores_ctl": 4}
    rows = [
        {**row, "cloud_name": name, "vm_keep_alive": own, "cascading_vm_keep_alive": 300}
        for name, own in (("a", 119), ("b", 0), ("c", -1), ("d", None), ("e", 300))
    ]
    result = made(written(tmp_path, "c.json", json.dumps(rows)))
    (worker,) = loaded(result, tmp_path).classes.values()
    assert worker.idle_limit == 300
    assert row_of(result, "vm_keep_alive", "a") is Fate.REPLACED


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_boot_timeout_that_is_none_leaves_the_time_to_register(limit: str, tmp_path: Path) -> None:
    result = timed(tmp_path, "condor_register_time_limit: 15\n", f"boot_timeout: {limit}\n")
    assert loaded(result, tmp_path).classes["default"].boot_deadline == 15 * MINUTE


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cloud_resources.conf", "# all of it\n#[example]\n#cloud_type: OpenStackNative\n#vm_slots: 10\n"),
        ("cloud_scheduler.conf", "# Sample\n\n#[global]\n#log_level: INFO\n"),
        ("elastiq.conf", "#\n# Sample\n#\n# [elastiq]\n# sleep_s = 5\n"),
        ("ecm.conf", "# the guide's\n#FLAVOR_VMS=\n#MAX_VMS=\n"),
        ("ec2rc.sh", "# of the dashboard\n# export EC2_URL=https://cloud.example.org\n"),
    ],
)
def test_a_sample_in_which_all_is_commented_out_is_known_for_what_it_is(
    name: str, text: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=rf"is an? {name} in which what counts is commented out") as error:
        made(written(tmp_path, name, text))
    assert "take the # from the lines that are yours" in str(error.value)


@pytest.mark.parametrize(("most", "limit"), [(65536, 64 * 2**10), (-1, None), (0, 0)])
def test_a_ceiling_of_memory_is_one(most: int, limit: int | None, tmp_path: Path) -> None:
    row = {
        "cloud_name": "a",
        "cloud_type": "openstack",
        "authurl": "https://k.example.org/v3",
        "ram_ctl": most,
    }
    settings = loaded(made(written(tmp_path, "c.json", json.dumps([{**row, "cores_ctl": 4}]))), tmp_path)
    assert settings.policy().cloud_limits["a"].memory == limit


@pytest.mark.parametrize("size", ["[1]", '"many"', "-3", "true", "1e30"])
def test_a_volume_of_no_size_is_a_sentence(size: str, tmp_path: Path) -> None:
    row = {
        "cloud_name": "a",
        "cloud_type": "openstack",
        "authurl": "https://k.example.org/v3",
        "cores_ctl": 4,
    }
    row["vm_boot_volume"] = f'{{"GBs": {size}}}'
    with pytest.raises(UsageError, match="GBs is no size"):
        made(written(tmp_path, "c.json", json.dumps([row])))


def test_an_application_credential_goes_to_clouds_yaml(csv2: importers.Import) -> None:
    comment = csv2.toml.partition("[clouds.birch]")[2].partition("driver")[0]
    assert 'application_credential_id: "0123abcd"' in comment
    assert "application_credential_secret: …" in comment
    assert "password" not in comment
    assert "project" not in comment, "such a credential has its project, and refuses another scope"


def test_a_login_without_domains_has_the_usual_ones(tmp_path: Path) -> None:
    text = "[a]\ncloud_type: OpenStackNative\nauth_url: https://k.example.org/v3\nusername: u\n"
    toml = made(written(tmp_path, "cloud_resources.conf", text)).toml
    assert 'user_domain_name: "Default"' in toml
    assert 'project_domain_name: "Default"' in toml


def test_a_group_whose_name_no_pool_may_have_gives_its_pool_a_near_one(tmp_path: Path) -> None:
    row = {"group_name": "lab.heads", "cloud_name": "f", "cloud_type": "openstack", "vm_image": "worker"}
    row |= {"authurl": "https://k.example.org/v3"}
    ran = made(written(tmp_path, "clouds.json", json.dumps([row])))
    assert loaded(ran, tmp_path).pool.name == "lab-heads"


def test_groups_and_aliases_of_csv2_are_classes(csv2: importers.Import, tmp_path: Path) -> None:
    settings = loaded(csv2, tmp_path)
    assert settings.pool.name == "particles"
    assert settings.pool.collector == "pool.example.org"
    group, alias = settings.classes["particles"], settings.classes["canada"]
    assert group.attributes == {"group_name": '"particles"'}
    assert alias.attributes == {"group_name": '"particles"', "target_alias": '"canada"'}
    assert (group.clouds, alias.clouds) == (("alder", "amazon"), ("alder",))
    assert (group.image, alias.idle_limit) == ("alma-9-worker", 5 * MINUTE)
    for name, like in (("particles-2m", group), ("canada-2m", alias)):
        other = settings.classes[name]
        assert (other.clouds, other.image) == (("birch",), "worker-old")
        assert (other.idle_limit, like.idle_limit) == (2 * MINUTE, 5 * MINUTE)
        assert (other.attributes, other.layers) == (like.attributes, like.layers)


def test_metadata_becomes_layers_but_for_what_only_csv2_fills(csv2: importers.Import, tmp_path: Path) -> None:
    (layer,) = loaded(csv2, tmp_path).classes["particles"].layers
    assert "mount -t nfs" in layer.text
    assert row_of(csv2, "default.yaml.j2", "metadata") is Fate.LOOK
    assert row_of(csv2, "off.yaml", "metadata") is Fate.NOT_NEEDED


def test_csv_and_json_of_the_same_clouds_come_to_the_same_clouds(tmp_path: Path) -> None:
    both = [loaded(made(CSV2_DATA / name), tmp_path) for name in ("clouds.json", "clouds.csv")]
    tables = [{name: cloud.settings for name, cloud in one.clouds.items()} for one in both]
    assert tables[0] == tables[1]
    assert [cloud.limits for cloud in both[0].clouds.values()] == [
        cloud.limits for cloud in both[1].clouds.values()
    ]


def test_a_csv_with_titles_may_have_any_columns(tmp_path: Path) -> None:
    text = (
        "cloud_name,cloud_type,authurl,cores_ctl\na,openstack,https://k.example.org/v3,7\n"
        'b,openstack,"https://l.example.org/v3",-1\n'
    )
    clouds = loaded(made(written(tmp_path, "list.csv", text)), tmp_path).clouds
    assert [cloud.limits.cores for cloud in clouds.values()] == [7, None]


def test_two_groups_are_two_classes(tmp_path: Path) -> None:
    rows = json.loads((CSV2_DATA / "clouds.json").read_text())["cloud_list"][:1]
    rows.append({**rows[0], "group_name": "other"})
    settings = loaded(made(written(tmp_path, "two.json", json.dumps(rows))), tmp_path)
    assert set(settings.clouds) == {"particles-alder", "other-alder"}
    assert settings.classes["other"].clouds == ("other-alder",)


# ----------------------------------------------------------------------------- nothing dropped, no secret


def test_every_key_of_the_two_files_has_its_row(cs1: importers.Import) -> None:
    said = {(row.file, row.section, row.key, row.line) for row in cs1.report.rows}
    for name in ("cloud_resources.conf", "cloud_scheduler.conf"):
        for value in values(read(CS1 / name)):
            assert (name, value.section, value.key, value.line) in said


def test_every_column_of_an_export_has_its_row(csv2: importers.Import) -> None:
    said = {(row.section, row.key) for row in csv2.report.rows}
    for row in json.loads((CSV2_DATA / "clouds.json").read_text())["cloud_list"]:
        assert {(row["cloud_name"], key) for key in row} <= said
    assert not csv2.report.of(Fate.UNKNOWN), "all of csv2's columns are known"


def test_unknown_keys_are_named(cs1: importers.Import) -> None:
    assert {row.key for row in cs1.report.of(Fate.UNKNOWN)} == {"frobnicate", "turbo"}


@pytest.mark.parametrize("program", [CLOUD_SCHEDULER, CSV2], ids=["v1", "csv2"])
def test_every_rule_says_where_a_value_goes_or_why_it_does_not(program: Program) -> None:
    seen = [(rule.section, rule.key.lower()) for rule in program.rules]
    assert len(seen) == len(set(seen)), "one rule for each key"
    for rule in program.rules:
        assert rule.why
        if rule.fate is Fate.TAKEN:
            assert rule.becomes
            assert rule.target


def test_no_secret_of_a_sample_is_shown(cs1: importers.Import, csv2: importers.Import) -> None:
    for result, folder in ((cs1, CS1), (csv2, CSV2_DATA)):
        assert any("canary" in path.read_text().lower() for path in folder.iterdir())
        assert "canary" not in (result.toml + str(result.report)).lower()
    assert row_of(cs1, "password", "Alder") is Fate.SECRET
    assert row_of(cs1, "secret_access_key", "amazon") is Fate.SECRET


@example({rule.key: "," for rule in CLOUD_RULES})
@example({"networks": ","})
@given(
    st.dictionaries(st.sampled_from([rule.key for rule in CLOUD_RULES]), st.text("a1/:.-, %", max_size=12))
)
def test_whatever_a_cloud_says_comes_to_a_file_that_loads_or_to_sentences(keys: dict[str, str]) -> None:
    text = "[Some Cloud]\n" + "".join(
        f"{key}: {value}\n" for key, value in keys.items() if key != "cloud_type"
    )
    text += "cloud_type: OpenStackNative\n"
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "cloud_resources.conf", text)
        try:
            result = made(path)
        except UsageError as error:
            for line in str(error).split("\n"):
                assert re.match(r"cloud_resources.conf(, line \d+)?: ", line)
        else:
            assert set(loaded(result, Path(folder)).clouds) == {"Some-Cloud"}


@pytest.mark.slow
@settings(max_examples=40)
@example([{"enabled": "\n"}])
@example([{"group_name": "\n"}])
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([rule.key for rule in CSV2.rules if rule.section == CLOUD]),
            st.none() | st.integers(-2, 9) | st.text(max_size=8) | st.sampled_from(["{}", "1.5", "a,b"]),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_whatever_an_export_says_comes_to_a_file_that_loads_or_to_sentences(
    rows: list[dict[str, object]],
) -> None:
    fixed = {
        "cloud_type": "openstack",
        "authurl": "https://k.example.org/v3",
        "cloud_name": "a",
        "cores_ctl": 1,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "clouds.json", json.dumps([{**row, **fixed} for row in rows]))
        try:
            result = made(path)
        except UsageError as error:
            lines = str(error).split("\n")
            assert all(line.startswith("clouds.json, ") for line in lines)
        else:
            assert len(loaded(result, Path(folder)).clouds) == len(rows)


# --------------------------------------------------------------------------------------------- bad input


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resources = written(
        tmp_path,
        "cloud_resources.conf",
        "[a]\ncloud_type: OpenStackNative\nauth_url: nowhere\nvm_slots: many\npriority: 1.5\n"
        "[b]\ncloud_type: OpenStackNative\nvm_slots: -3\n",
    )
    assert call(["import", str(resources)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.findall(r"cloud_resources.conf, line (\d+): ", err) == ["3", "4", "5", "8"]
    assert err.count("\n") == 4


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("[quota]\nmax_vms = ten\nmin_vms = -2\n[ec2]\napi_url = nowhere\n", ["2", "3", "5"]),
        ("[elastiq]\nstray\nidle_for_time_s = 1\nanother\n", ["2", "4"]),
    ],
)
def test_elastiq_tells_all_faults_too(tmp_path: Path, text: str, lines: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        made(written(tmp_path, "elastiq.conf", text))
    assert sorted(re.findall(r"line (\d+)", str(caught.value))) == lines
    assert str(caught.value).count("\n") == len(lines) - 1


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("r.conf", "[a]\ncloud_type: Azure\n", "no driver here speaks to any of its clouds"),
        ("s.conf", "[global]\nvm_lifetime: 3\n", "name the cloud_resources.conf as well"),
        ("l.json", '{"anna": 5}', "l.json is a user limit file of Cloud Scheduler; name"),
        (
            "c.csv",
            "|".join(["x"] * 37) + "\n" + "a|b\n" + "c|d\n",
            "c.csv, line 2: has 2 cells where 37 belong",
        ),
        ("g.json", '[{"group_name": "g", "htcondor_fqdn": "h"}]', "lists no clouds"),
        ("b.json", '{"cloud_list": [', "is neither"),
    ],
)
def test_input_that_comes_to_nothing_is_one_clear_sentence(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        made(written(tmp_path, name, text))


def test_files_of_two_programs_are_refused() -> None:
    with pytest.raises(UsageError, match="one at a time"):
        made(CS1 / "cloud_resources.conf", CSV2_DATA / "clouds.json")
    with pytest.raises(UsageError, match="one at a time"):
        made(CS1 / "cloud_resources.conf", DATA / "elastiq.conf")


def test_what_the_csv_prints_is_what_is_read() -> None:
    """37 columns, in the order of csv2's own command line."""
    assert len(jsons.COLUMNS) == len(set(jsons.COLUMNS)) == 37
    known = {rule.key for rule in CSV2.rules if rule.section == CLOUD}
    assert set(jsons.COLUMNS) <= known
