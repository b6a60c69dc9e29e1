"""`updraft import`: what earlier configurations come to, what is said of each key, and what is never said."""

import base64
import gzip
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft import config, importers
from updraft.clouds.ec2.settings import Settings as Ec2Settings
from updraft.config.model import Settings
from updraft.core.settings import Threshold
from updraft.errors import UsageError
from updraft.importers import ECM, ELASTIQ, Fate
from updraft.importers.formats.reading import read, values
from updraft.importers.output.result import Result, Section, Setting
from updraft.importers.output.rules import Program
from updraft.importers.output.toml import text_of
from updraft.importers.output.userdata import Part

DATA = Path(__file__).parent / "data"
HOUR = 3600.0


def made(*names: str | Path, pool: str = "") -> importers.Import:
    return importers.run([DATA / name for name in names], pool)


def loaded(text: str, folder: Path) -> Settings:
    path = folder / "updraft.toml"
    path.write_text(text)
    return config.load(path)


def written(folder: Path, text: str, name: str = "elastiq.conf") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def elastiq(folder: Path, text: str) -> importers.Import:
    return importers.run([written(folder, text)])


def with_user_data(folder: Path, data: bytes) -> importers.Import:
    return elastiq(folder, f"[ec2]\nuser_data_b64 = {base64.b64encode(data).decode()}\n")


def fates(result: importers.Import) -> dict[str, set[Fate]]:
    found: dict[str, set[Fate]] = {}
    for row in result.report.rows:
        found.setdefault(row.key, set()).add(row.fate)
    return found


def test_what_a_file_says_is_not_said_to_be_missing(tmp_path: Path) -> None:
    said = elastiq(tmp_path, "[elastiq]\nwaiting_jobs_time_s = 100\n")
    assert fates(said)["waiting_jobs_time_s"] == {Fate.TAKEN}
    assert fates(elastiq(tmp_path, "[quota]\nmax_vms = 2\n"))["waiting_jobs_time_s"] == {Fate.REPLACED}


def test_a_minimum_that_is_cut_wants_a_look(tmp_path: Path) -> None:
    result = elastiq(tmp_path, "[quota]\nmax_vms = 2\nmin_vms = 9\n")
    assert fates(result)["min_vms"] == {Fate.LOOK}
    assert fates(result)["max_vms"] == {Fate.TAKEN}


# ---------------------------------------------------------------------------------------- what it comes to


def test_an_elastiq_conf_comes_to_the_same_pool(tmp_path: Path) -> None:
    settings = loaded(made("elastiq.conf", "state").toml, tmp_path)
    worker = settings.classes["default"]
    assert settings.pool.name == "elastiq"
    assert (worker.image, worker.flavors) == ("ami-9f3da3fc", ("cldareapd.medium",))
    assert (worker.min, worker.max, worker.slots) == (0, 3, 4)
    assert worker.idle_limit == HOUR, "elastiq's default, not ours"
    assert worker.boot_deadline == 600
    assert (worker.condor, worker.universes) == ("install", ("docker",))
    cloud = settings.clouds["ec2"]
    assert cloud.driver == "ec2"
    ec2 = Ec2Settings.model_validate(dict(cloud.settings))
    assert (ec2.endpoint, ec2.key_name) == ("https://cloud.example.org:8788/services/Cloud", "my_key")


def test_an_ecm_conf_means_what_its_users_expect(tmp_path: Path) -> None:
    settings = loaded(made("ecm.conf", "ec2rc.sh", "worker.sh", pool="group").toml, tmp_path)
    worker = settings.classes["default"]
    assert settings.pool.name == "group"
    assert (worker.flavors, worker.min, worker.max) == (("cldareapd.medium",), 1, 8)
    assert worker.slots == 2, "the most jobs that run on one worker"
    assert (worker.idle_limit, worker.boot_deadline) == (2400, 1200)
    assert settings.clouds["ec2"].settings["key_name"] == "group-key", "the name has no .pem"
    assert settings.clouds["ec2"].settings["endpoint"] == "https://cloud.example.org:8788/services/Cloud"


def test_an_ecm_conf_alone_is_enough_but_for_the_image(tmp_path: Path) -> None:
    result = made("ecm.conf")
    worker = loaded(result.toml, tmp_path).classes["default"]
    assert (worker.condor, worker.universes, worker.layers) == ("install", ("docker",), ())
    assert [row.key for row in result.report.of(Fate.LOOK)] == ["image"]


def test_the_cloud_is_asked_about_the_old_flavor_alone(tmp_path: Path) -> None:
    """All the types of a cloud may be many hundreds, and seconds of calls."""
    settings = loaded(made("ecm.conf").toml, tmp_path)
    assert settings.clouds["ec2"].settings["flavors"] == list(settings.classes["default"].flavors)


def test_the_masters_user_data_has_all_of_it(tmp_path: Path) -> None:
    script = base64.b64encode(b"#!/bin/sh\nmount /software\n").decode()
    text = (
        "#!/bin/bash\nEC2_ACCESS_KEY=keykeykeycanary\nEC2_SECRET_KEY=secretcanary\nEC2_URL=https://c.example/\n"
        "MAX_VMS=4\nMIN_VMS=2\nFLAVOR=m\nIMAGE_ID=ami-1\nJOBS_PER_VM=1\nIDLE_TIME=900\nKEY_NAME=k\n"
        f"SLAVE_USERDATA={script}\nCUID=$(id -u condor)\ncat <<E\nHIGHPORT = 42000\nE\n"
    )
    result = importers.run([written(tmp_path, text, "master-centos7")])
    worker = loaded(result.toml, tmp_path).classes["default"]
    assert (worker.image, worker.flavors, worker.min, worker.max) == ("ami-1", ("m",), 2, 4)
    assert worker.layers[0].text == "#!/bin/sh\nmount /software\n"
    assert "canary" not in result.toml + str(result.report)


def test_a_silent_file_gets_elastiqs_own_numbers_and_not_ours(tmp_path: Path) -> None:
    result = elastiq(tmp_path, "[elastiq]\n")
    worker = loaded(result.toml, tmp_path).classes["default"]
    assert (worker.min, worker.max, worker.idle_limit, worker.boot_deadline) == (0, 3, 3600, 600)
    assert worker.slots == "partitionable", "nobody has asked for a number"
    assert {row.key for row in result.report.rows if "elastiq's own" in row.text} == {
        "min_vms",
        "max_vms",
        "idle_for_time_s",
        "estimated_vm_deploy_time_s",
    }


@pytest.mark.parametrize(
    ("quota", "least", "most"),
    [
        ("max_vms = 0", 0, None),
        ("max_vms = -1\nmin_vms = 4", 4, None),
        ("max_vms = 5.0\nmin_vms = 2.0", 2, 5),
        ("max_vms = 2\nmin_vms = 9", 2, 2),
        ("max_vms =\nmin_vms =", 0, 3),
    ],
)
def test_quotas(tmp_path: Path, quota: str, least: int, most: int | None) -> None:
    worker = loaded(elastiq(tmp_path, f"[quota]\n{quota}\n").toml, tmp_path).classes["default"]
    assert (worker.min, worker.max) == (least, most)


def test_an_idle_time_longer_than_a_lifetime_lengthens_the_lifetime(tmp_path: Path) -> None:
    text = f"[elastiq]\nidle_for_time_s = {30 * 24 * 3600}\nestimated_vm_deploy_time_s = 0\n"
    worker = loaded(elastiq(tmp_path, text).toml, tmp_path).classes["default"]
    assert worker.lifetime > worker.idle_limit == 30 * 24 * HOUR
    assert worker.boot_deadline > 0


def test_an_empty_flavor_is_what_ec2_takes_it_for(tmp_path: Path) -> None:
    text = "[ec2]\nflavour =\nkey_name =\nimage_id = ami-1\nuser_data_b64 =\n"
    settings = loaded(elastiq(tmp_path, text).toml, tmp_path)
    assert settings.classes["default"].flavors == ("m1.small",)
    assert "key_name" not in settings.clouds["ec2"].settings


def test_the_machines_of_a_state_file_are_commands_in_a_comment() -> None:
    text = made("elastiq.conf", "state").toml
    assert "remove them in the cloud:\n#   i-0000a1b2\n#   i-0000a1b3\n" in text
    assert "updraft adopt" not in text, "it is refused for machines that updraft's user-data haven't started"
    assert "elastiq's state file" not in made("elastiq.conf").toml


def test_the_same_files_give_the_same_text() -> None:
    assert made("elastiq.conf", "state") == made("elastiq.conf", "state")


# ------------------------------------------------------------------------------------ nothing is dropped


@pytest.mark.parametrize("names", [("elastiq.conf",), ("ecm.conf", "ec2rc.sh")])
def test_every_key_of_the_files_has_its_row(names: tuple[str, ...]) -> None:
    said = {(row.file, row.section, row.key, row.line) for row in made(*names).report.rows}
    for name in names:
        for value in values(read(DATA / name)):
            assert (name, value.section, value.key, value.line) in said


def test_every_known_key_of_elastiq_is_in_the_sample_or_its_tests() -> None:
    text = (DATA / "elastiq.conf").read_text()
    left = [rule.key for rule in ELASTIQ.rules if f"\n{rule.key} = " not in text]
    assert left == ["idle_for_time_s", "ipv4", "ipv6"]


@given(st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,12}", fullmatch=True), st.text("ab1. ", max_size=8)))
def test_unknown_keys_are_named_whatever_they_are(keys: dict[str, str]) -> None:
    import tempfile

    known = {rule.key for rule in ELASTIQ.rules}
    lines = "".join(f"{key} = {value.strip()}\n" for key, value in keys.items() if key not in known)
    with tempfile.TemporaryDirectory() as folder:
        result = elastiq(Path(folder), f"[elastiq]\n{lines}")
    assert {row.key for row in result.report.of(Fate.UNKNOWN)} == set(keys) - known


def test_a_key_that_is_there_twice_is_named_twice_and_the_last_one_counts(tmp_path: Path) -> None:
    result = elastiq(tmp_path, "[quota]\nmax_vms = 4\nmax_vms = 5\n")
    assert "max = 5" in result.toml
    assert fates(result)["max_vms"] == {Fate.TAKEN, Fate.REPLACED}


def test_few_jobs_and_short_waits_are_ignored_as_before(tmp_path: Path) -> None:
    text = "[elastiq]\nwaiting_jobs_threshold = 10\nwaiting_jobs_time_s = 100\n"
    result = elastiq(tmp_path, text)
    assert loaded(result.toml, tmp_path).policy().threshold == Threshold(10, 100.0)
    assert fates(result)["waiting_jobs_threshold"] == fates(result)["waiting_jobs_time_s"] == {Fate.TAKEN}


@pytest.mark.parametrize(("threshold", "seconds"), [("0", "0"), ("1", ""), ("", "0.0"), ("0.0", "0")])
def test_a_threshold_that_holds_nothing_back_is_not_written(
    threshold: str, seconds: str, tmp_path: Path
) -> None:
    text = f"[elastiq]\nwaiting_jobs_threshold = {threshold}\nwaiting_jobs_time_s = {seconds}\n"
    result = elastiq(tmp_path, text)
    assert loaded(result.toml, tmp_path).policy().threshold == Threshold()
    assert "[demand]" not in result.toml
    assert fates(result)["waiting_jobs_threshold"] == {Fate.NOT_NEEDED}


def test_a_dry_run_that_was_on_is_something_to_look_at() -> None:
    found = fates(made("elastiq.conf"))
    assert found["dry_run_boot_vms"] == {Fate.LOOK}
    assert found["dry_run_shutdown_vms"] == {Fate.REPLACED}


@pytest.mark.parametrize("program", [ECM, ELASTIQ], ids=["ecm", "elastiq"])
def test_every_rule_says_where_a_value_goes_or_why_it_does_not(program: Program) -> None:
    for rule in program.rules:
        assert rule.why
        if rule.fate is Fate.TAKEN:
            assert rule.becomes
            assert rule.target
        assert rule.default is None or rule.target


# ------------------------------------------------------------------------------------------- no secret


def test_no_secret_of_any_sample_is_shown() -> None:
    for names in (("elastiq.conf", "state"), ("ecm.conf", "ec2rc.sh", "worker.sh")):
        assert any("canary" in (DATA / name).read_text() for name in names)
        result = made(*names)
        assert "canary" not in result.toml
        assert "canary" not in str(result)


@given(secret=st.from_regex(r"[A-Za-z0-9/+]{8,40}", fullmatch=True), where=st.integers(0, 5))
def test_the_secret_key_is_masked_wherever_it_occurs(secret: str, where: int) -> None:
    import tempfile

    lines = ["#!/bin/sh", "one", f"aws --key {secret} ls", "two", f"echo {secret}>/x", "three"]
    script = "\n".join([*lines[:where], f"# {secret}", *lines[where:]])
    if where == 0:
        script = "#!/bin/sh\n" + script
    data = base64.b64encode(script.encode()).decode()
    with tempfile.TemporaryDirectory() as folder:
        result = elastiq(Path(folder), f"[ec2]\naws_secret_access_key={secret}\nuser_data_b64={data}\n")
    assert secret not in result.toml.replace(data, "")
    assert secret not in str(result.report)


def test_a_stray_line_of_an_ecm_conf_is_named_and_not_shown(tmp_path: Path) -> None:
    path = written(tmp_path, "MAX_VMS=2\ncanary\n", "ecm.conf")
    result = importers.run([path])
    assert [(row.key, row.line) for row in result.report.of(Fate.UNKNOWN)] == [("(no KEY=VALUE)", 2)]
    assert "canary" not in str(result)


def test_an_ec2rc_beside_an_elastiq_conf_is_understood(tmp_path: Path) -> None:
    result = importers.run([written(tmp_path, "[elastiq]\n"), DATA / "ec2rc.sh"])
    assert 'endpoint = "https://cloud.example.org:8788/services/Cloud" # EC2_URL' in result.toml
    assert fates(result)["EC2_SECRET_KEY"] == {Fate.SECRET}
    assert "canary" not in str(result)


@pytest.mark.parametrize(
    "url",
    [
        "https://me:canary@c.example:8773/x",
        "https://c.example:8773/x?sig=canary",
        "https://c.example:8773/x#canary",
    ],
)
def test_a_password_in_an_address_is_left_out(tmp_path: Path, url: str) -> None:
    result = elastiq(tmp_path, f"[ec2]\napi_url = {url}\n")
    assert 'endpoint = "https://c.example:8773/x"' in result.toml
    assert "canary" not in str(result)
    assert "left out" in next(row.text for row in result.report.rows if row.key == "api_url")


# --------------------------------------------------------------------------------------------- user-data


def test_a_script_without_what_sets_htcondor_up(tmp_path: Path) -> None:
    text = loaded(made("elastiq.conf").toml, tmp_path).classes["default"].layers[0].text
    assert "condor_config" not in text
    assert "condor_store_cred" not in text
    assert "systemctl restart condor" not in text
    assert "mkdir -p /software && tar -C /software -xzf site.tar.gz\n" in text
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


@pytest.mark.parametrize("form", ["plain", "gzip", "multipart", "wrapped"])
def test_forms_of_user_data(tmp_path: Path, form: str) -> None:
    script = b"#!/bin/sh\necho here\n"
    if form == "multipart":
        head = b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
        head += b"--b\nContent-Type: text/x-shellscript\n\n"
        middle = b"\n--b\nContent-Type: text/cloud-config\n\n#cloud-config\npackages: [git]\n\n--b--\n"
        result = with_user_data(tmp_path, head + script + middle)
    elif form == "wrapped":
        data = base64.b64encode(script).decode()
        result = elastiq(tmp_path, f"[ec2]\nuser_data_b64 = {data[:10]}\n  {data[10:20]}\n  {data[20:]}\n")
    else:
        result = with_user_data(tmp_path, gzip.compress(script) if form == "gzip" else script)
    layers = loaded(result.toml, tmp_path).classes["default"].layers
    assert layers[0].text.rstrip("\n") == script.decode().rstrip("\n")
    assert len(layers) == (2 if form == "multipart" else 1)


def test_cloud_config_stays_and_is_looked_at_where_it_names_htcondor(tmp_path: Path) -> None:
    text = '#cloud-config\nruncmd:\n  - echo "CONDOR_HOST = %ipv4%" >> /etc/condor/condor_config.local\n'
    result = with_user_data(tmp_path, text.encode())
    (layer,) = loaded(result.toml, tmp_path).classes["default"].layers
    assert layer.text == text
    assert layer.variables == {"ipv4": ""}
    assert "line 3" in next(row.text for row in result.report.of(Fate.LOOK) if row.key == "user_data_b64")


def test_a_cernvm_contextualisation_is_kept_for_cernvm(tmp_path: Path) -> None:
    text = b"[amiconfig]\nplugins = condor\n[condor]\ncondor_master = %ipv4%\ncondor_secret = canary\n"
    result = with_user_data(tmp_path, text)
    worker = loaded(result.toml, tmp_path).classes["default"]
    assert worker.contextualisation == "cernvm"
    assert "canary" not in str(result)


def test_user_data_that_is_nothing_but_htcondor_leaves_no_layer(tmp_path: Path) -> None:
    script = b"#!/bin/sh\n# worker\nX=1\nyum install -y condor-all-8.6.9\nservice condor start\n"
    result = with_user_data(tmp_path, script)
    worker = loaded(result.toml, tmp_path).classes["default"]
    assert (worker.layers, worker.condor) == ((), "install")


def test_substitutes_that_were_set_are_set(tmp_path: Path) -> None:
    layer = loaded(made("elastiq.conf").toml, tmp_path).classes["default"].layers[0]
    assert layer.variables == {"ipv4": "", "fqdn": "head.example.org"}


@given(st.text(max_size=80))
def test_any_layer_comes_back_from_the_file_as_it_went_in(body: str) -> None:
    text = "#!/bin/sh\n" + body.replace("\r", "")
    setting = Setting("x", "it")
    result = Result(("f",), "p", {}, {"default": Section({"image": setting}, layers=(Part(text),))})
    tables = tomllib.loads(text_of(result))
    assert tables["classes"]["default"]["layers"] == [{"text": text}]


# --------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[quota]\n\nmax_vms = ten\n", 'elastiq.conf, line 3: max_vms: "ten" is not a number'),
        ("[quota]\nmin_vms = -2\n", 'elastiq.conf, line 2: min_vms: "-2" is no count'),
        ("[quota]\nmin_vms = 1.5\n", "is no count"),
        ("[quota]\nmax_vms = inf\n", "is not a number"),
        ("[elastiq]\nidle_for_time_s = 1e99\n", "elastiq.conf, line 2: idle_for_time_s"),
        ("[ec2]\napi_url = cloud.example.org\n", "elastiq.conf, line 2: api_url is no address"),
        ("[ec2]\napi_url = https://[::1\n", "is no address"),
        ("[ec2]\nuser_data_b64 = !!canary!!\n", "elastiq.conf, line 2: user_data_b64 is not the base64"),
        ("[ec2]\nuser_data_b64 = H4sIAAAA\n", "is not the base64 of a text"),
        ("[ec2]\naws_secret_access_key canary\n", "elastiq.conf, line 2: is neither [section] nor key"),
        ("[substitute]\nipv4 = a b canary\n", "elastiq.conf, line 2: ipv4 is not one plain word"),
        ("hello\nworld\n", "neither an elastiq.conf"),
        ("  \n", "is empty"),
        ("i-1234\ni-5678\n", "name the ecm.conf, the elastiq.conf"),
    ],
)
def test_bad_input_is_one_clear_sentence(
    tmp_path: Path, text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from updraft.cli.main import call

    assert call(["import", str(written(tmp_path, text))]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
    assert "canary" not in err


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_bytes(b"x" * (2 << 20))
    for name, sentence in (
        ("missing", "No such file"),
        (".", "Is a directory"),
        ("binary", "not UTF-8"),
        ("large", "larger than"),
    ):
        with pytest.raises(UsageError, match=sentence):
            importers.run([tmp_path / name])


def test_two_pools_at_once_are_refused() -> None:
    with pytest.raises(UsageError, match="one at a time"):
        made("ecm.conf", "elastiq.conf")


def test_a_pool_name_that_is_none() -> None:
    for name in ("a b", "lab.heads", "lab.images"):
        with pytest.raises(UsageError, match="--pool"):
            made("ecm.conf", pool=name)


# ---------------------------------------------------------------------------------------------- the verb


def test_the_verb_writes_toml_to_stdout_and_a_table_of_80_columns_to_stderr(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "updraft.cli.main", "import", "elastiq.conf", "state"]
    ran = subprocess.run(argv, cwd=DATA, capture_output=True, text=True, check=False, env={"COLUMNS": "80"})
    assert ran.returncode == 0
    assert loaded(ran.stdout, tmp_path).pool.name == "elastiq"
    assert max(map(len, ran.stderr.splitlines())) <= 80
    for word in ("frobnicate", "aws_secret_access_key", "idle_for_time_s", "machines"):
        assert word in ran.stderr
    assert "canary" not in ran.stderr + ran.stdout
