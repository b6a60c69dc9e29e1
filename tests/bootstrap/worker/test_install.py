"""What a worker installs at its first boot: the choice of version and key, and each family's script.

The scripts run here with the machine's paths moved into a folder and with stand-ins for the package managers,
which write down how they were called. That shows the way through a script, not that a repository has what it
asks for.
"""

import ast
import email
import gzip
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.reading import cloud_config, parts, worker, written
from updraft.bootstrap import EC2_LIMIT, Install, parse_layer, worker_user_data
from updraft.bootstrap.lean import lean
from updraft.bootstrap.worker.install import (
    CERNVM,
    CERNVM_KEY,
    HTCONDOR,
    PINNED,
    install_files,
    series,
    wanted,
)
from updraft.errors import BootstrapError

SHIPPED = Path(str(files("updraft.bootstrap").joinpath("files")))
PROGRAMS = sorted(str(path.relative_to(SHIPPED)) for path in SHIPPED.rglob("*.py"))
OTHER = "AAAA0000AAAA0000AAAA0000AAAA0000AAAA0000"


# --------------------------------------------------------------------------------- what is to be installed


@pytest.mark.parametrize(
    ("version", "exactly", "prefixes", "repository"),
    [
        ("25.0", True, ("25.0",), "25.0"),
        ("25.x", True, ("25",), "25.x"),
        ("25.14", True, ("25.14",), "25.x"),
        ("25.14.1", True, ("25.14.1",), "25.x"),
        ("25.14.1", False, ("25.14.1", "25.14"), "25.x"),
        ("24.0.16", False, ("24.0.16", "24.0"), "24.0"),
    ],
)
def test_a_version_and_its_repository(
    version: str, exactly: bool, prefixes: tuple[str, ...], repository: str
) -> None:
    assert wanted(version, exactly) == prefixes
    assert series(version) == repository


def conf(install: Install) -> str:
    """The settings that the scripts read."""
    entries = {entry["path"]: entry["content"] for entry in install_files(install)}
    return str(entries["/etc/updraft/install.conf"])


def test_the_keys_are_those_of_the_version_or_the_sites() -> None:
    assert f"KEYS={PINNED[24]}" in conf(Install(version="24.0"))
    assert f"KEYS={OTHER}" in conf(Install(version="24.0", keys=(OTHER,)))
    assert f"REPOSITORY={HTCONDOR}" in conf(Install(version="24.0"))
    assert "MIRROR=yes" in conf(Install(version="24.0", repository="https://mirror.test/htcondor/"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": "25"}, "no version of HTCondor"),
        ({"version": "25.x.1"}, "no version of HTCondor"),
        ({"version": "25.0; reboot"}, "no version of HTCondor"),
        ({"version": "99.0"}, "no key is known"),
        ({"version": "25.0", "keys": ("ABC",)}, "no fingerprint"),
        ({"version": "25.0", "repository": "http://mirror.test"}, "must begin with https"),
        ({"version": "25.0", "repository": "https://a b"}, "must begin with https"),
        ({"universes": ("vm",)}, "no recipe for the universe vm"),
        ({"cvmfs": "package", "cvmfs_pins": ("ab" * 32,)}, "fingerprints"),
        ({"cvmfs": "package", "cvmfs_source": "http://mirror.test"}, "must begin with https"),
        ({"cvmfs": "cvmfsexec"}, "SHA-256"),
    ],
)
def test_what_cannot_be_installed_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BootstrapError, match=sentence):
        worker_user_data(worker(install=Install(**changes)))


def test_an_image_that_has_it_all_gets_no_scripts() -> None:
    plain = written(worker_user_data(worker()))
    assert not [path for path in plain if "install" in path]
    docker = written(worker_user_data(worker(install=Install(universes=("docker",)))))
    assert "CONDOR" not in docker["/etc/updraft/install.conf"]["content"]
    assert "DOCKER = /usr/bin/docker" in docker["/etc/condor/config.d/90-updraft.conf"]["content"]
    assert "DOCKER" not in plain["/etc/condor/config.d/90-updraft.conf"]["content"]


def test_there_is_still_room_for_the_sites_layers() -> None:
    most = worker(install=Install(version="25.0", universes=("docker", "apptainer")), market="spot")
    assert len(worker_user_data(most)) < EC2_LIMIT - 1792


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_lean_program_does_the_same(name: str) -> None:
    def bare(text: str) -> str:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                node.body = node.body[1:]
            if isinstance(node, ast.Module):
                node.body = [one for one in node.body if "typing" not in vars(one).values()]
            if isinstance(node, ast.arg):
                node.annotation = None
            if isinstance(node, ast.FunctionDef):
                node.returns = None
        return ast.dump(tree)

    text = (SHIPPED / name).read_text()
    assert bare(lean(name)) == bare(text)
    assert len(lean(name)) < 0.9 * len(text)


@pytest.mark.parametrize("name", ["install.sh", "install-debian.sh", "install-rhel.sh"])
def test_a_lean_script_is_one(name: str) -> None:
    done = subprocess.run(["sh", "-n"], input=lean(name), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_lean_program_has_nothing_that_only_people_read() -> None:
    text = lean("agent/watchers/guard.py")
    assert "def reachable(heads):\n" in text
    assert "def look(self, passed, *, processes, head, boot_failed):\n" in text
    assert not {"#", '"""', "typing", "->"} & {word for word in text.split() if word[:1] not in "'f"}
    unit = lean("updraft-agent.service")
    assert unit.startswith("[Unit]\n[Service]\n")
    assert "/usr/local/lib/updraft/agent" in unit
    assert lean("door.py").startswith("#!/usr/bin/python3 -I\nimport select\n")


def test_a_lean_script_has_its_values_without_what_is_said_of_them() -> None:
    found = lean("boot.sh").splitlines()
    assert found[0] == "#!/bin/sh"
    assert {"EXPECT=", "PATIENCE=60", "KEYS=", "UNITS="} <= set(found)
    assert not [line for line in lean("early.sh").splitlines() if line.lstrip().startswith("#")]
    assert "    [ $# -gt 0 ] || give_up" in lean("install.sh")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_a_worker_are_of_python_3_6(name: str) -> None:
    tree = ast.parse((SHIPPED / name).read_text(), feature_version=(3, 6))
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "__future__" not in froms  # 3.6 doesn't know `annotations`
    evaluated = [
        ast.unparse(part)
        for node in ast.walk(tree)
        for part in _annotations(node)
        if isinstance(part, ast.Subscript | ast.BinOp)
    ]
    assert evaluated == []  # list[str] and the like must be quoted


def _annotations(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.FunctionDef):
        arguments = [*node.args.args, *node.args.kwonlyargs]
        return [one for one in (node.returns, *(a.annotation for a in arguments)) if one is not None]
    return [node.annotation] if isinstance(node, ast.AnnAssign) else []


# ------------------------------------------------------------------------------------------------ CernVM

CONTEXT = "[amiconfig]\nplugins=cernvm\n\n[ucernvm-begin]\nresize_rootfs=on\n[ucernvm-end]\n"


def test_cernvm_finds_its_context_in_the_plain_text_and_cloud_init_the_rest() -> None:
    data = worker_user_data(worker(cernvm=True, layers=(parse_layer("cvm", CONTEXT),)))
    assert CONTEXT.encode() in data
    assert len(data) < 16384
    kinds = {}
    for part in email.message_from_bytes(data).walk():
        if not part.is_multipart():
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            kinds[part.get_content_type()] = payload
    assert list(kinds) == ["application/x-gzip", "text/amiconfig"]
    assert gzip.decompress(kinds["application/x-gzip"]).startswith(b"#cloud-config\n")


def test_a_context_is_refused_where_nothing_reads_it() -> None:
    with pytest.raises(BootstrapError, match="cernvm"):
        worker_user_data(worker(layers=(parse_layer("cvm", CONTEXT),)))
    assert parts(worker_user_data(worker()))[0][0] == "text/cloud-config"
    assert "write_files" in cloud_config(worker_user_data(worker()))


# ------------------------------------------------------------------------------------- the scripts at work

OS_RELEASE = {
    "debian 12": ("debian", "12", "bookworm", ""),
    "debian 13": ("debian", "13", "trixie", ""),
    "ubuntu 22.04": ("ubuntu", "22.04", "jammy", "debian"),
    "ubuntu 24.04": ("ubuntu", "24.04", "noble", "debian"),
    "rhel 8": ("rhel", "8.10", "", "fedora"),
    "rhel 9": ("rhel", "9.6", "", "fedora"),
    "rhel 10": ("rhel", "10.1", "", "centos fedora"),
    "almalinux 8": ("almalinux", "8.10", "", "rhel centos fedora"),
    "rocky 9": ("rocky", "9.6", "", "rhel centos fedora"),
    "centos 10": ("centos", "10", "", "rhel fedora"),
}
# How each stand-in answers beyond writing itself down; $ROOT is the folder that the machine's paths are in.
# As the real ones were seen to answer: apt-get says on the standard error what it couldn't fetch, and returns
# 0; a repoquery returns 1, or 0 where a repository may be passed over (`skip_if_unavailable`). $DOWN is how
# many looks find no network.
FAILS = "n=$(cat $ROOT/down 2>/dev/null || echo $DOWN); if [ $n -gt 0 ]; then echo $((n - 1)) >$ROOT/down; "
STUBS = {
    "apt-get": 'case "$*" in *" update"*) '
    + FAILS
    + """echo "W: Failed to fetch https://here/InRelease  Could not resolve 'here'"; """
    'echo "W: Some index files failed to download. They have been ignored, or old ones used instead."; '
    "else touch $ROOT/lists; fi; exit 0;; *install*) if [ ! -e $ROOT/lists ]; then "
    'echo "E: Unable to locate package ${*##* }"; exit 100; fi;; esac >&2; '
    'case "$*" in *install*condor=*) touch $ROOT/bin/condor_master;; *docker.io*) '
    "touch $ROOT/bin/docker;; *install*' cvmfs '*) touch $ROOT/bin/cvmfs2;; "
    "*install*nftables*) touch $ROOT/bin/nft;; esac",
    "apt-cache": "[ -e $ROOT/lists ] || exit 0; "
    "[ ! -e $ROOT/etc/apt/sources.list.d/updraft-htcondor.list ] || echo "
    '" condor | $HAS | https://here"; '
    '[ -z "$OWN" ] || echo " condor | $OWN | https://debian"',
    "dpkg": "echo amd64",
    "dnf": '[ -z "$NO" ] || case "$*" in *$NO*) exit 1;; esac; case "$*" in *repoquery*) '
    + FAILS
    + "echo \"Error: Failed to download metadata for repo 'updraft-htcondor'\" >&2; "
    'case "$*" in *skip_if_unavailable=0*) exit 1;; esac; exit 0; fi; printf "$HAS\\n";; '
    "*install*condor-[0-9]*) touch $ROOT/bin/condor_master;; "
    "*install*docker-ce*) touch $ROOT/bin/docker;; *install*' cvmfs '*) touch $ROOT/bin/cvmfs2;; "
    "*install*apptainer*) touch $ROOT/bin/apptainer;; "
    "*install*nftables*) touch $ROOT/bin/nft;; "
    "*install*epel*) mkdir -p $ROOT/etc/pki/rpm-gpg; "
    "echo x >>$ROOT/etc/pki/rpm-gpg/RPM-GPG-KEY-EPEL-$MAJOR;; esac",
    "curl": 'while [ "$1" != -o ]; do shift; done; echo key >"$2"',
    "python3": "printf '%s\\n' pinned >$4; [ -z \"$WRONG\" ]",  # -I pin-key FILE TARGET FINGERPRINT
    **dict.fromkeys(("rpm", "crb", "systemctl", "usermod", "getent", "nft", "sleep"), ":"),
    "sha256sum": 'read -r sum file; [ -z "$WRONG" ]',
    "install": 'shift 2; cp "$@"',
}


@dataclass
class Machine:
    """A folder that the scripts take for the machine."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()

    def run(self, release: str, install: Install, **environment: str) -> str:
        """Run the installation; returns the reason of a failure, or nothing."""
        name, version, codename, like = OS_RELEASE[release]
        for folder in (
            "bin",
            "run/updraft",
            "var/log",
            "etc/updraft",
            "etc/apt/sources.list.d",
            "etc/yum.repos.d",
        ):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        for script, body in STUBS.items():
            if script not in self.lacks:
                self._program(script, body)
        self._program("touch", '/usr/bin/touch "$1"; /bin/chmod 755 "$1"', note=False)
        for script in ("cat", "tr", "grep", "tail", "mkdir", "cp", "awk", "cut", "sort", "printf"):
            (self.root / "bin" / script).symlink_to(str(shutil.which(script)))
        text = f"ID={name}\nVERSION_ID={version}\nVERSION_CODENAME={codename}\nID_LIKE='{like}'\n"
        (self.root / "etc/os-release").write_text(text)
        for entry in install_files(install):
            path = self.root / entry["path"].lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._moved(entry["content"]))
        done = subprocess.run(
            ["/bin/sh", str(self.root / "usr/local/lib/updraft/install")],
            env={
                "PATH": str(self.root / "bin"),
                "ROOT": str(self.root),
                "HAS": "25.14.1-1",
                "OWN": "",
                "WRONG": "",
                "NO": "",
                "DOWN": "0",
                "MAJOR": version.split(".")[0],
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root,
        )
        why = self.root / "run/updraft/why"
        said = why.read_text() if why.exists() else ""
        assert (done.returncode != 0) == bool(said), done.stderr
        assert "\n" not in said.strip()
        return said

    @property
    def calls(self) -> list[str]:
        """How the stand-ins were called, in order."""
        return (self.root / "calls").read_text().splitlines()

    def _program(self, name: str, body: str, note: bool = True) -> None:
        path = self.root / "bin" / name
        said = 'echo "${0##*/} $*" >>$ROOT/calls\n' if note else ""
        path.write_text(f"#!/bin/sh\n{said}{body}\n")
        path.chmod(0o755)

    def _moved(self, text: str) -> str:
        for place in ("/usr/local/lib/updraft", "/etc/", "/run/updraft", "/var/log/", "/usr/lib/apt/"):
            text = text.replace(place, f"{self.root}{place}")
        return text.replace(f"file://{self.root}{self.root}", f"file://{self.root}")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


DEBIANS = [name for name in OS_RELEASE if name.startswith(("debian", "ubuntu"))]
RHELS = [name for name in OS_RELEASE if name not in DEBIANS]


@pytest.mark.parametrize("release", DEBIANS)
def test_debian_and_ubuntu_install_from_the_pinned_repository(machine: Machine, release: str) -> None:
    assert machine.run(release, Install(version="25.14.1", exactly=False)) == ""
    name, _, codename, _ = OS_RELEASE[release]
    listed = (machine.root / "etc/apt/sources.list.d/updraft-htcondor.list").read_text()
    ring = f"{machine.root}/etc/apt/keyrings/updraft-htcondor.asc"
    assert listed == f"deb [arch=amd64 signed-by={ring}] {HTCONDOR}/{name}/25.x {codename} main\n"
    pinned = [call for call in machine.calls if "pin-key" in call]
    assert [call.split()[-1] for call in pinned] == [PINNED[25]]
    assert machine.calls[-1].endswith("install --no-install-recommends condor=25.14.1-1")


@pytest.mark.parametrize("release", ["debian 12", "rocky 9"])
def test_what_closes_the_metadata_address_is_installed_with_htcondor_or_without(
    tmp_path: Path, release: str
) -> None:
    for name, install in (("condor", Install(version="25.14")), ("universe", Install(universes=("docker",)))):
        bare = Machine(tmp_path / name, lacks=("nft",))
        assert bare.run(release, install) == ""
        assert [call for call in bare.calls if call.endswith(" nftables")]
        there = Machine(tmp_path / f"{name}-and-nft")
        assert there.run(release, install) == ""
        assert not [call for call in there.calls if "nftables" in call]


def test_where_it_cannot_be_installed_the_boot_says_so(tmp_path: Path) -> None:
    bare = Machine(tmp_path, lacks=("nft",))
    assert "nftables cannot be installed" in bare.run("rocky 9", Install(version="25.14"), NO="nftables")


def test_the_distributions_own_package_is_taken_where_it_is_of_the_version(machine: Machine) -> None:
    assert machine.run("debian 13", Install(version="23.9"), OWN="23.9.6+dfsg-2.1") == ""
    assert not [call for call in machine.calls if "pin-key" in call]
    assert machine.calls[-1].endswith("condor=23.9.6+dfsg-2.1")


def test_a_mirror_goes_before_the_distributions_package(machine: Machine) -> None:
    mirror = Install(version="25.14", repository="https://mirror.test/h", keys=(OTHER,))
    assert machine.run("debian 13", mirror, OWN="25.14.0+dfsg-1") == ""
    assert machine.calls[-1].endswith("condor=25.14.1-1")
    assert [call.split()[-1] for call in machine.calls if "pin-key" in call] == [OTHER]


@pytest.mark.parametrize("release", RHELS)
def test_enterprise_linux_installs_from_pinned_repositories(machine: Machine, release: str) -> None:
    assert (
        machine.run(release, Install(version="25.14.1", exactly=False), HAS="25.13.0\n25.14.1\n25.14.0") == ""
    )
    major = OS_RELEASE[release][1].split(".")[0]
    repository = (machine.root / "etc/yum.repos.d/updraft-htcondor.repo").read_text()
    assert f"baseurl={HTCONDOR}/25.x/el{major}/$basearch/release\n" in repository
    assert "gpgcheck=1\n" in repository
    pinned = [call.split()[-1] for call in machine.calls if "pin-key" in call]
    assert pinned[-1] == PINNED[25]
    assert len(set(pinned[:-1])) == 1  # EPEL's, of this release
    assert machine.calls[-1].endswith("install condor-25.14.1")
    assert ("rpm --import" in " ".join(machine.calls)) == release.startswith("rhel")


@pytest.mark.parametrize("release", ["debian 12", "rocky 9"])
def test_a_key_that_is_not_the_pinned_one_installs_nothing(machine: Machine, release: str) -> None:
    said = machine.run(release, Install(version="25.0"), WRONG="yes")
    assert "is not the pinned one" in said
    assert not [
        call for call in machine.calls if "condor" in call and " install" in call and "-install" not in call
    ]
    assert not list((machine.root / "etc/apt/sources.list.d").iterdir())


@pytest.mark.parametrize("release", ["debian 12", "rocky 9"])
def test_a_version_that_is_not_there_says_what_is(machine: Machine, release: str) -> None:
    said = machine.run(release, Install(version="25.9"), HAS="25.14.1")
    assert said.startswith("no HTCondor 25.9 for ")
    assert "it has: 25.14.1" in said


@pytest.mark.parametrize("release", ["debian 12", "rocky 9"])
@pytest.mark.parametrize("down", ["1", "2"])
def test_a_network_that_comes_late_is_waited_for(machine: Machine, release: str, down: str) -> None:
    assert machine.run(release, Install(version="25.14"), DOWN=down) == ""
    assert machine.calls[-1].split()[-1].startswith("condor")
    assert len([call for call in machine.calls if call.startswith("sleep")]) <= int(down)


@pytest.mark.parametrize("release", ["debian 12", "rocky 9"])
def test_a_network_that_does_not_come_is_what_the_reason_says(machine: Machine, release: str) -> None:
    said = machine.run(release, Install(version="25.14"), DOWN="99")
    assert "cannot be fetched" in said
    assert ("Could not resolve 'here'" if release == "debian 12" else "Failed to download metadata") in said
    assert "Some index files" not in said
    looks = [call for call in machine.calls if " update" in call or "repoquery" in call]
    assert 3 <= len(looks) <= 4, "more than one look, and an end of it"


@pytest.mark.parametrize("what", [Install(universes=("docker",)), Install(universes=("apptainer",))])
def test_what_universes_need_is_looked_for_again_too(tmp_path: Path, what: Install) -> None:
    name = what.universes[0]
    late = Machine(tmp_path / "late").run("debian 12", what, DOWN="1")
    assert late == "" or name == "apptainer"  # which the stand-in never brings
    said = Machine(tmp_path / "never").run("debian 12", what, DOWN="99")
    assert f"{name} was asked for" in said
    assert "Failed to fetch https://here/InRelease  Could not resolve 'here'" in said


def test_a_source_of_the_site_that_is_gone_costs_no_look_where_all_is_found(machine: Machine) -> None:
    (machine.root / "lists").parent.mkdir(exist_ok=True)
    (machine.root / "lists").touch()  # of another source
    assert machine.run("debian 12", Install(version="25.14"), DOWN="99") == ""
    assert not [call for call in machine.calls if call.startswith("sleep")]


@pytest.mark.slow
def test_the_real_apt_says_that_there_is_no_network(machine: Machine, tmp_path: Path) -> None:
    """It returns 0 all the same."""
    if shutil.which("apt-get") is None:
        pytest.skip("no apt here")
    own = tmp_path / "apt"
    for folder in ("etc/apt/sources.list.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
        (own / folder).mkdir(parents=True)
    (own / "var/lib/dpkg").mkdir()
    (own / "var/lib/dpkg/status").touch()
    (own / "etc/apt/sources.list.d/one.list").write_text("deb http://127.0.0.1:1/debian bookworm main\n")
    (own / "conf").write_text(
        f'Dir "{own}"; Dir::Bin::Methods "/usr/lib/apt/methods"; Acquire::http::Proxy "DIRECT";\n'
        f'APT::Sandbox::User ""; Dir::Bin::dpkg "{shutil.which("dpkg")}";\n'
    )
    call = f'APT_CONFIG={own}/conf PATH=/usr/bin:/bin exec {{}} "$@" -o Acquire::Retries=0'
    real = {name: call.format(shutil.which(name)) for name in ("apt-get", "apt-cache")}
    with pytest.MonkeyPatch.context() as patched:
        for name, body in real.items():
            patched.setitem(STUBS, name, body)
        said = machine.run("debian 12", Install(version="25.14"))
    assert "cannot be fetched" in said
    assert "http://127.0.0.1:1/debian" in said
    assert [call for call in machine.calls if call.startswith("sleep")]


def test_a_family_without_a_recipe_says_so(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OS_RELEASE, "alpine", ("alpine", "3.20", "", ""))
    assert "no recipe to install anything on alpine" in machine.run("alpine", Install(version="25.0"))


@pytest.mark.parametrize("release", ["ubuntu 24.04", "rhel 9"])
def test_docker_is_installed_started_and_open_to_condor(machine: Machine, release: str) -> None:
    assert machine.run(release, Install(universes=("docker",))) == ""
    said = machine.calls
    assert said.index("usermod -a -G docker condor") < said.index("systemctl start docker")
    assert not [call for call in said if "condor=" in call or "condor-2" in call]
    if release == "rhel 9":
        assert "060A61C51B558A7F742B77AAC52FEB6B621E9F35" in " ".join(said)


def test_apptainer_that_no_repository_has_says_so(machine: Machine) -> None:
    assert "no repository of this image has it" in machine.run("debian 13", Install(universes=("apptainer",)))


@pytest.mark.parametrize("release", ["debian 13", "ubuntu 22.04", "almalinux 8", "rhel 9"])
def test_the_client_of_cernvm_fs_comes_from_the_pinned_repository(machine: Machine, release: str) -> None:
    assert machine.run(release, Install(cvmfs="package")) == ""
    assert [call.split()[-1] for call in machine.calls if "pin-key" in call] == [CERNVM_KEY]
    assert " ".join(machine.calls).count(" cvmfs cvmfs-config-default") == 1
    if release in DEBIANS:
        listed = (machine.root / "etc/apt/sources.list.d/updraft-cernvm.list").read_text()
        assert f" {CERNVM}/apt {OS_RELEASE[release][2]}-prod main\n" in listed
    else:
        repository = (machine.root / "etc/yum.repos.d/updraft-cernvm.repo").read_text()
        assert f"baseurl={CERNVM}/yum/cvmfs/EL/{OS_RELEASE[release][1][0]}/$basearch/\n" in repository


def test_a_client_that_is_not_to_be_had_says_so(machine: Machine) -> None:
    assert "is not the pinned one" in machine.run("debian 13", Install(cvmfs="package"), WRONG="yes")


SELF_CONTAINED = Install(
    cvmfs="cvmfsexec", cvmfs_source="https://site.test/cvmfsexec", cvmfs_pins=("ab" * 32,)
)


def test_cvmfsexec_is_fetched_and_has_to_be_the_pinned_file(machine: Machine) -> None:
    assert machine.run("debian 13", SELF_CONTAINED) == ""
    assert (machine.root / "usr/local/lib/updraft/cvmfsexec").exists()
    assert not [call for call in machine.calls if call.startswith("apt-get")]


def test_another_file_than_the_pinned_one_is_not_put_in_place(machine: Machine) -> None:
    assert "not the pinned one" in machine.run("rocky 9", SELF_CONTAINED, WRONG="yes")
    assert not (machine.root / "usr/local/lib/updraft/cvmfsexec").exists()


# ---------------------------------------------------------------------------------------------- the keys


def _gpg(home: Path, *words: str) -> str:
    command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two keys of different kinds as gpg writes them: fingerprint to armoured text."""
    if shutil.which("gpg") is None:
        pytest.skip("gpg is not installed")
    home = tmp_path_factory.mktemp("gnupg")
    home.chmod(0o700)
    found = {}
    for name, kind in (("one", "rsa2048"), ("two", "ed25519")):
        _gpg(home, "--passphrase", "", "--quick-generate-key", f"{name}@test.invalid", kind, "sign", "never")
        listed = _gpg(home, "--with-colons", "--fingerprint", f"{name}@test.invalid")
        print_ = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:"))
        found[print_] = _gpg(home, "--armor", "--export", f"{name}@test.invalid")
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
    return found


def _pin(folder: Path, text: str, *prints: str) -> "subprocess.CompletedProcess[str]":
    (folder / "in").write_text(text)
    command = [
        sys.executable,
        "-I",
        str(SHIPPED / "pin_key.py"),
        str(folder / "in"),
        str(folder / "out"),
        *prints,
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_only_the_pinned_key_is_taken_out_of_a_file(tmp_path: Path, keys: dict[str, str]) -> None:
    everything = "".join(keys.values())
    for fingerprint, text in keys.items():
        spaced = " ".join(fingerprint[at : at + 4] for at in range(0, 40, 4)).lower()
        assert _pin(tmp_path, everything, spaced).returncode == 0
        assert (tmp_path / "out").read_text() == text


def test_without_a_pinned_key_nothing_is_written(tmp_path: Path, keys: dict[str, str]) -> None:
    first, second = keys
    for text, wanted_print in ((keys[first], second), ("<html>", first), ("", first), (keys[first], "")):
        assert _pin(tmp_path, text, wanted_print).returncode == 1
        assert not (tmp_path / "out").exists()
    assert _pin(tmp_path, keys[first]).returncode == 1
    short = keys[first].splitlines()
    assert _pin(tmp_path, "\n".join([*short[:6], short[-1]]), first).returncode == 1
