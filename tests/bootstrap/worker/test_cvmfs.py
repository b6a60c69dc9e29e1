"""What a worker is told of CernVM-FS, and what its boot makes of it, with stand-ins for what mounts."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.reading import worker, written
from updraft.bootstrap import Install, worker_user_data
from updraft.bootstrap.worker.cvmfs import Repository, SharedSoftware, condor_lines, cvmfs_files
from updraft.config.tables.cvmfs import advertised
from updraft.errors import BootstrapError

KEY = "-----BEGIN PUBLIC KEY-----\nMIIBIjAN\n-----END PUBLIC KEY-----\n"
ATLAS = Repository("atlas.cern.ch")
OWN = Repository("my-soft.example.org", "http://10.0.0.2/cvmfs/@fqrn@", KEY)
BOTH = SharedSoftware((ATLAS, OWN), proxy="http://squid:3128|http://squid2:3128;DIRECT")
SAYS = "etc/condor/config.d/92-updraft-cvmfs.conf"


def test_a_worker_without_repositories_is_told_nothing() -> None:
    assert not [path for path in written(worker_user_data(worker())) if "cvmfs" in path]


def test_the_client_is_told_the_proxies_and_what_is_the_sites_own() -> None:
    files = written(worker_user_data(worker(install=Install(cvmfs="package"), software=BOTH)))
    assert files["/etc/cvmfs/default.local"]["content"] == (
        'CVMFS_HTTP_PROXY="http://squid:3128|http://squid2:3128;DIRECT"\n'
    )
    own = files["/etc/cvmfs/config.d/my-soft.example.org.local"]["content"]
    assert 'CVMFS_SERVER_URL="http://10.0.0.2/cvmfs/@fqrn@"\n' in own
    assert "CVMFS_PUBLIC_KEY=/etc/cvmfs/keys/my-soft.example.org.pub\n" in own
    assert files["/etc/cvmfs/keys/my-soft.example.org.pub"]["content"] == KEY
    assert not [path for path in files if "config.d/atlas" in path]
    assert "CVMFS=package\n" in files["/etc/updraft/install.conf"]["content"]


def test_everything_at_once_fits_into_user_data() -> None:
    install = Install(version="25.0", universes=("docker", "apptainer"), cvmfs="package")
    assert len(worker_user_data(worker(market="spot", install=install, software=BOTH))) < 16384


def test_a_machine_says_what_it_has_as_jobs_ask_for_it() -> None:
    says = advertised(("atlas.cern.ch", "my-soft.example.org"))
    assert says == {
        "HAS_CVMFS_atlas_cern_ch": "true",
        "HAS_CVMFS_my_soft_example_org": "true",
        "UpdraftCVMFS": '"atlas.cern.ch,my-soft.example.org"',
    }
    assert advertised(()) == {}
    assert condor_lines(("a.b",)).endswith("STARTD_ATTRS = $(STARTD_ATTRS) HAS_CVMFS_a_b UpdraftCVMFS\n")


@pytest.mark.parametrize(
    ("software", "words"),
    [
        (SharedSoftware((Repository("atlas"),)), "no full name"),
        (SharedSoftware((Repository("a.b/../c.d"),)), "no full name"),
        (SharedSoftware((Repository("a.b", "http://h/$(id)", KEY),)), "address and a public key"),
        (SharedSoftware((Repository("a.b", "http://h", "-----BEGIN PRIVATE KEY-----"),)), "public key"),
        (SharedSoftware((ATLAS,), proxy='DIRECT"\nCVMFS_X="'), "list of proxies"),
        (SharedSoftware((ATLAS,), client="parrot"), "no client"),
    ],
)
def test_what_would_write_something_else_is_refused(software: SharedSoftware, words: str) -> None:
    with pytest.raises(BootstrapError, match=words):
        cvmfs_files(software)


# --------------------------------------------------------------------------------------- the script at work

STUBS = {
    # mount -t cvmfs REPOSITORY AT
    "mount": 'case " $BROKEN " in *" $3 "*) echo "Transport endpoint is not connected" >&2; exit 1;; esac\n'
    'case " $EMPTY " in *" $3 "*) ;; *) echo >"$4/program";; esac',
    "mountpoint": "false",
    "runuser": 'shift 3; exec "$@"',
    "timeout": 'shift; exec "$@"',
    "chown": ":",
}
# cvmfsexec REPOSITORY... -- COMMAND...
RUNNER = """\
#!/bin/sh
case " $* " in *" ${BROKEN:-none} "*) exit 1 ;; esac
echo "cvmfsexec $*" >>$TEST_ROOT/calls
while [ "$1" != -- ]; do mkdir -p "$TEST_ROOT/cvmfs/$1" && : >"$TEST_ROOT/cvmfs/$1/program"; shift; done
shift
exec "$@"
"""


@dataclass
class Machine:
    """A folder that the script takes for the machine."""

    root: Path

    def boot(self, software: SharedSoftware, **environment: str) -> str:
        """Run the script; returns the reason of a failure, or nothing."""
        places = ("bin", "etc/condor/config.d", "run/updraft", "usr/local/lib/updraft")
        for folder in places:
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        for name, body in STUBS.items():
            self._program(
                self.root / "bin" / name, f'#!/bin/sh\necho "{name} $*" >>$TEST_ROOT/calls\n{body}\n'
            )
        self._program(self.root / "usr/local/lib/updraft/cvmfsexec", RUNNER)
        for entry in cvmfs_files(software):
            path = self.root / entry["path"].lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._moved(entry["content"]))
        done = subprocess.run(
            ["/bin/sh", str(self.root / "usr/local/lib/updraft/cvmfs")],
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "TEST_ROOT": str(self.root), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        why = self.root / "run/updraft/why"
        said = why.read_text() if why.exists() else ""
        assert (done.returncode != 0) == bool(said), done.stderr
        return said

    @property
    def says(self) -> str:
        """HTCondor's configuration of what is mounted; nothing where there is none."""
        path = self.root / SAYS
        return path.read_text() if path.exists() else ""

    @property
    def calls(self) -> str:
        return (self.root / "calls").read_text()

    def _program(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def _moved(self, text: str) -> str:
        for place in ("/usr/local/lib/updraft", "/etc/", "/run/updraft"):
            text = text.replace(place, f"{self.root}{place}")
        return text.replace("ROOT=/cvmfs", f"ROOT={self.root}/cvmfs")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if shutil.which("sh") is None:
        pytest.skip("there is no shell here")
    return Machine(tmp_path)


def test_what_is_mounted_is_looked_into_as_a_user_and_then_advertised(machine: Machine) -> None:
    assert machine.boot(BOTH) == ""
    assert machine.says == condor_lines(BOTH.names)
    for name in BOTH.names:
        assert f"mount -t cvmfs {name} {machine.root}/cvmfs/{name}" in machine.calls
        assert f"runuser -u nobody -- ls {machine.root}/cvmfs/{name}" in machine.calls


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"BROKEN": "my-soft.example.org"}, "cannot mount my-soft.example.org: Transport endpoint"),
        ({"EMPTY": "atlas.cern.ch"}, "has mounted atlas.cern.ch, and there is nothing in it"),
    ],
)
def test_one_that_is_not_there_fails_the_boot_and_nothing_is_advertised(
    machine: Machine, environment: dict[str, str], words: str
) -> None:
    said = machine.boot(BOTH, **environment)
    assert words in said
    assert machine.says == ""


def test_after_a_reboot_it_is_mounted_again_or_no_longer_advertised(machine: Machine) -> None:
    assert machine.boot(BOTH) == ""
    assert machine.boot(BOTH) == ""
    assert machine.says
    assert machine.boot(BOTH, BROKEN="atlas.cern.ch")
    assert machine.says == ""


def test_the_configuration_of_others_repositories_is_mounted_before_them(machine: Machine) -> None:
    (machine.root / "etc/cvmfs/default.d").mkdir(parents=True)
    (machine.root / "etc/cvmfs/default.d/50-cern.conf").write_text(
        "CVMFS_CONFIG_REPOSITORY=cvmfs-config.cern.ch\nCVMFS_DEFAULT_DOMAIN=cern.ch\n"
    )
    assert machine.boot(SharedSoftware((OWN,))) == ""
    assert "mount -t cvmfs cvmfs-config.cern.ch" not in machine.calls, "a site's own needs none"
    assert machine.boot(BOTH) == ""
    mounted = [line.split()[3] for line in machine.calls.splitlines() if line.startswith("mount -t")]
    assert mounted == [OWN.name, "cvmfs-config.cern.ch", *BOTH.names]
    assert "cvmfs-config" not in machine.says
    assert (machine.root / "etc/fuse.conf").read_text() == "user_allow_other\n"


UNPRIVILEGED = SharedSoftware((ATLAS,), client="cvmfsexec")


def test_with_cvmfsexec_each_job_runs_inside_it(machine: Machine) -> None:
    files: list[Any] = cvmfs_files(UNPRIVILEGED)
    assert not [entry for entry in files if entry["path"].startswith("/etc/cvmfs")]
    assert machine.boot(UNPRIVILEGED) == ""
    wrapper = machine.root / "usr/local/lib/updraft/cvmfs-job"
    assert f"USER_JOB_WRAPPER = {wrapper}\n" in machine.says
    assert "HAS_CVMFS_atlas_cern_ch = true\n" in machine.says
    assert "mount -t" not in machine.calls
    done = subprocess.run(
        [str(wrapper), "echo", "a  b", "$c"],
        env={"TEST_ROOT": str(machine.root), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "a  b $c\n", "the job's own words reach it as they are"


def test_a_cvmfsexec_that_cannot_mount_fails_the_boot(machine: Machine) -> None:
    assert "cvmfsexec cannot mount atlas.cern.ch" in machine.boot(UNPRIVILEGED, BROKEN="atlas.cern.ch")
    assert machine.says == ""
