"""The script that puts updraft onto a head: real pip, real https, and hashes that hold or don't."""

import base64
import hashlib
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PathDistribution
from ipaddress import ip_address
from pathlib import Path

import pip
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from updraft import DISTRIBUTION, __version__
from updraft.bootstrap.head import source
from updraft.bootstrap.head.source import WHEEL
from updraft.bootstrap.machine import shipped

OWN_TOOLS = ("cat", "grep", "ln", "mkdir", "sh")


def get_updraft(
    tmp_path: Path, python: str, settings: Mapping[str, str], known: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """The script, with its paths moved below `tmp_path`, and a Python that it finds."""
    conf = tmp_path / "boot.conf"
    conf.write_text("".join(f"{name}='{value}'\n" for name, value in settings.items()))
    text = shipped("get-updraft.sh").replace("/etc/updraft/boot.conf", str(conf))
    text = text.replace("/run/updraft", str(tmp_path / "run")).replace("/dev/console", str(tmp_path / "none"))
    text = text.replace("/opt/updraft", str(tmp_path / "opt"))
    path = tmp_path / "path"
    path.mkdir(exist_ok=True)
    for name in OWN_TOOLS:
        (path / name).symlink_to(str(shutil.which(name)))
    for name, program in {"python3": python, "dnf": "#!/bin/sh\nexit 1\n"}.items():
        (path / name).write_text(program)
        (path / name).chmod(0o755)
    return subprocess.run(
        ["/bin/sh", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(path), **(known or {})},
    )


# Stands in for Python and, in the environment that it makes, for pip and for updraft.
FAKE_PYTHON = """\
#!/bin/sh
[ "$1" = -c ] && exit 0
/bin/mkdir -p "$3/bin" "$3/lib/python3.11/site-packages/updraft"
: >"$3/lib/python3.11/site-packages/updraft/run.lock"
printf '#!/bin/sh\\necho "$@" >>%s\\n' "$3/pip-was-told" >"$3/bin/pip"
printf '#!/bin/sh\\necho 0.1\\n' >"$3/bin/updraft"
/bin/chmod +x "$3/bin/pip" "$3/bin/updraft"
"""
SOURCE = f"https://wheels.test/{WHEEL}#sha256={'ab' * 32}"


def test_an_image_that_has_updraft_is_left_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "updraft"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = get_updraft(tmp_path, "#!/bin/sh\nexit 1\n", {"UPDRAFT": str(program), "SOURCE": SOURCE})
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("index", "where"),
    [
        ("", ""),
        ("https://mirror.test/simple", "--index-url https://mirror.test/simple "),
        ("file:///opt/wheels", "--no-index --find-links file:///opt/wheels "),
    ],
)
def test_pip_takes_nothing_without_its_hash(tmp_path: Path, index: str, where: str) -> None:
    program = tmp_path / "usr" / "updraft"
    settings = {"UPDRAFT": str(program), "SOURCE": SOURCE, "INDEX": index}
    done = get_updraft(tmp_path, FAKE_PYTHON, settings)
    assert done.returncode == 0, done.stdout + done.stderr
    own, rest = (tmp_path / "opt" / "pip-was-told").read_text().splitlines()
    for told in (own, rest):
        assert told.startswith("install ")
        assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(told.split())
    lock = tmp_path / "opt/lib/python3.11/site-packages/updraft/run.lock"
    assert own.endswith(f":all: {SOURCE}")
    assert rest.endswith(f":all: {where}-r {lock}")
    assert program.resolve() == (tmp_path / "opt" / "bin" / "updraft").resolve()


@pytest.mark.parametrize(
    ("python", "source", "why"),
    [
        ("#!/bin/sh\nexit 1\n", SOURCE, "no Python of 3.11"),
        (FAKE_PYTHON, "", "nothing was said of where to get it"),
        (
            FAKE_PYTHON.replace('echo "$@"', 'exit 1; echo "$@"'),
            SOURCE.replace("#", "?signature=secret#"),
            f"pip cannot install https://wheels.test/{WHEEL}\n",
        ),
    ],
)
def test_why_it_cannot_be_had_is_one_line_on_the_console(
    tmp_path: Path, python: str, source: str, why: str
) -> None:
    done = get_updraft(tmp_path, python, {"UPDRAFT": str(tmp_path / "u"), "SOURCE": source})
    assert done.returncode == 1
    assert done.stdout.startswith("updraft-boot: FAILED: ")
    assert why in done.stdout
    assert why in (tmp_path / "run" / "failed").read_text()
    assert not (tmp_path / "u").exists()


# ----------------------------------------------------------------------------------------------- real parts


@dataclass
class Shop:
    """Wheels at an https address, and as folders: a small updraft, and one package that its lock names."""

    folder: Path
    address: str = ""
    certificate: Path = field(default_factory=Path)
    own: str = ""

    @property
    def source(self) -> str:
        return f"{self.address}/{WHEEL}#sha256={self.own}"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str], script: str = "") -> Path:
    """A wheel as any builder makes it."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{info}/entry_points.txt": f"[console_scripts]\n{script}\n"} if script else {}),
    }

    def line(path: str, text: str) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(text.encode())}\n"

    record = "".join(line(path, text) for path, text in contents.items())
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**contents, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return made


@contextmanager
def at_https(folder: Path, keys: Path) -> Iterator[tuple[str, Path]]:
    """That folder at an address of this machine, and the certificate to trust for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both, public = keys / "both.pem", keys / "public.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    both.write_bytes(private + public.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}", public
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "shop"
    needed = wheel(folder / "simple" / "needed", "needed", "1.0", {"needed.py": "WORD = 'at work'\n"})
    program = "import needed\ndef main() -> None:\n    print(needed.WORD)\n"
    files = {
        "updraft/__init__.py": program,
        "updraft/run.lock": f"needed==1.0 \\\n    --hash=sha256:{sha256(needed)}\n",
    }
    own = wheel(folder, DISTRIBUTION, __version__, files, "updraft = updraft:main")
    assert own.name == WHEEL
    with at_https(folder, tmp_path) as (address, certificate):
        yield Shop(folder, address, certificate, sha256(own))


# `python3 -m venv` spends four seconds on unpacking a pip: most tests take the one that is here.
QUICK_VENV = """\
if [ "$1 $2" = "-m venv" ]; then
    {python} -m venv --without-pip "$3" || exit
    for part in {pip}; do /bin/ln -s "$part" "$3"/lib/python3*/site-packages/; done
    /usr/bin/printf '#!/bin/sh\\nexec "%s/bin/python" -m pip "$@"\\n' "$3" >"$3/bin/pip"
    exec /bin/chmod +x "$3/bin/pip"
fi
"""


def boot(
    tmp_path: Path, shop: Shop, source: str, index: str, own_pip: bool = False
) -> "subprocess.CompletedProcess[str]":
    """As a head does at its first boot, with this machine's Python, and its pip or a new one (`own_pip`)."""
    real = os.path.realpath(sys.executable)
    place = Path(pip.__file__).parent
    parts = " ".join(map(str, (place, *place.parent.glob("pip-*.dist-info"))))
    quick = "" if own_pip else QUICK_VENV.format(python=real, pip=parts)
    python = f'#!/bin/sh\n{quick}exec {real} "$@"\n'
    known = {"PIP_CERT": str(shop.certificate), "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}
    settings = {"UPDRAFT": str(tmp_path / "usr/updraft"), "SOURCE": source, "INDEX": index}
    return get_updraft(tmp_path, python, settings, known)


@pytest.mark.slow
def test_a_wheel_by_its_hash_brings_what_it_needs_by_theirs(
    tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = boot(tmp_path, shop, shop.source, f"{shop.address}/simple/", own_pip=True)
    assert (done.returncode, done.stdout) == (0, "at work\n"), done.stdout + done.stderr
    (noted,) = (tmp_path / "opt").rglob("updraft_htcondor-*.dist-info")
    monkeypatch.setattr(source, "distribution", lambda _name: PathDistribution(noted))
    assert source.own_source() == shop.source, "an updraft so installed gives its heads the same wheel"


@pytest.mark.slow
def test_wheels_that_the_machine_has_on_its_disk_are_held_to_the_same(tmp_path: Path, shop: Shop) -> None:
    own = f"file://{shop.folder}/{WHEEL}#sha256={shop.own}"
    done = boot(tmp_path, shop, own, f"file://{shop.folder}/simple/needed")
    assert (done.returncode, done.stdout) == (0, "at work\n"), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("place", ["https", "file"])
def test_another_wheel_is_refused_and_that_is_said(tmp_path: Path, shop: Shop, place: str) -> None:
    at = f"{shop.address}/{WHEEL}" if place == "https" else f"file://{shop.folder}/{WHEEL}"
    done = boot(tmp_path, shop, f"{at}#sha256={'ab' * 32}", f"{shop.address}/simple/")
    assert done.returncode == 1
    assert f"updraft-boot: FAILED: {at} is not what was asked for: its hash" in done.stdout
    assert not list((tmp_path / "opt").rglob("updraft*"))
    assert not (tmp_path / "usr/updraft").exists()


@pytest.mark.slow
def test_another_package_than_the_locks_is_refused_and_that_is_said(tmp_path: Path, shop: Shop) -> None:
    wheel(shop.folder / "simple" / "needed", "needed", "1.0", {"needed.py": "WORD = 'a stranger'\n"})
    done = boot(tmp_path, shop, shop.source, f"{shop.address}/simple/")
    assert done.returncode == 1
    assert "updraft-boot: FAILED: one of the packages that updraft needs is not what was asked" in done.stdout
    assert "needed" in done.stderr
    assert not list((tmp_path / "opt").rglob("needed.py"))
    assert not (tmp_path / "usr/updraft").exists()


@pytest.mark.slow
def test_an_address_without_the_right_certificate_is_not_taken(tmp_path: Path, shop: Shop) -> None:
    (tmp_path / "other").mkdir()
    with at_https(shop.folder, tmp_path / "other") as (_, strange):
        shop.certificate = strange
        done = boot(tmp_path, shop, shop.source, "")
    assert done.returncode == 1
    assert "updraft-boot: FAILED: pip cannot install https://127.0.0.1" in done.stdout
