"""What is kept and logged holds no secret that can be told from honest text, and honest text stays."""

import itertools
import json
import random
import string
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from updraft.app import serving
from updraft.core.model import Reason
from updraft.ledger import Ledger
from updraft.ledger.secrets import REMOVED, scrub, scrubbed, suspicious

KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"  # noqa: S105 (the example of AWS's own pages)
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3MDB9.c2lnbmF0dXJl"  # noqa: S105 (made up)
HASH = "$6$rounds=4096$J8v.Gd0kq2/Wc1x$" + "aB3./" * 17 + "x"
FERNET = "gAAAAABm" + "Zk3-_Qx" * 14 + "=="

# What consoles and errors say, and the part of it that nobody may read.
SAID = [
    (f"aws_access_key_id = {KEY_ID}", KEY_ID),
    (f"export AWS_ACCESS_KEY_ID={KEY_ID}", KEY_ID),
    ("credentials ASIAIOSFODNN7EXAMPLE, from a role", "ASIAIOSFODNN7EXAMPLE"),
    (f"aws_secret_access_key = {SECRET}", SECRET),
    (f"AWS_SECRET_ACCESS_KEY={SECRET}", SECRET),
    (f'  "SecretAccessKey" : "{SECRET}",', SECRET),
    (f"[   12.3] cloud-init[523]: {SECRET}", SECRET),
    ('"Token" : "x", "aws_session_token": "IQoJb3JpZ2luX2VjEH/0aDm"', "IQoJb3JpZ2luX2VjEH/0aDm"),
    ("password: hunter2", "hunter2"),
    ("Password: swordfish\r\n", "swordfish"),
    ("root password: hunter2 (change it at the first login)", "hunter2"),
    ("login as 'cirros' user. default password: 'gocubsgo'. use 'sudo' for root.", "gocubsgo"),
    ("#  Setting Bitnami application password to 'kYvN7rXbQ2aZ'  #", "kYvN7rXbQ2aZ"),
    ("Password for user root is: Xy7-_a", "Xy7-_a"),
    ("the admin password is Tr0ub4dor&3", "Tr0ub4dor&3"),
    ('{"server": {"adminPass": "S7bVnGB2fT2x", "id": "5aaee3c3"}}', "S7bVnGB2fT2x"),
    ('said {\\"adminPass\\": \\"S7bVnGB2fT2x\\"}', "S7bVnGB2fT2x"),
    ("OS_PASSWORD=correct,horse", "correct,horse"),
    ("application_credential_secret: rEaLlY_sEcReT-1", "rEaLlY_sEcReT-1"),
    ("Command line: BOOT_IMAGE=/vmlinuz root=/dev/vda1 rootpw=toor quiet", "toor"),
    ("DB_PASS=geheim ./start", "geheim"),
    ("mounting https://alice:geheim1@repo.example.org/path failed", "geheim1"),
    ("Authorization: Bearer abcdefghij", "abcdefghij"),
    ("X-Auth-Token: abcdefghij", "abcdefghij"),
    (f"X-Subject-Token: {FERNET}", FERNET),
    (f"keystone gave {FERNET} to us", FERNET),
    (f"ubuntu:{HASH}:19000:0:99999:7:::", HASH),
    (PRIVATE, "b3BlbnNzaC1rZXk"),
    ("b3BlbnNzaC1rZXk\nAAAA\n-----END RSA PRIVATE KEY-----\nlogin:", "b3BlbnNzaC1rZXk"),
    (f"token={TOKEN}", "c2lnbmF0dXJl"),
    (f"updraft_{TOKEN} of x.y.z", "c2lnbmF0dXJl"),
    (f"machine.{TOKEN}.", "c2lnbmF0dXJl"),
]


@pytest.mark.parametrize(("text", "secret"), SAID)
def test_secrets_of_consoles_are_taken_out(text: str, secret: str) -> None:
    clean = scrub(f"before\n{text}\nafter it")
    assert secret not in clean
    assert REMOVED in clean
    assert clean.startswith("before") or "END RSA" in text
    assert clean.endswith("after it")
    assert scrub(clean) == clean
    assert suspicious(json.dumps(text)), "the quick look must not miss what the thorough one finds"


@pytest.mark.parametrize("before", ["", "[   20.123] cloud-init[523]: ", "cloud-init[99]: "])
def test_random_passwords_of_cloud_init_are_taken_out(before: str) -> None:
    lines = [
        "Set the following 'random' passwords",
        "",
        "ubuntu:aB3$kd:9'x",
        'root:r+Zz!"#/',
        "done: it boots on",
    ]
    clean = scrub("\r\n".join(before + line for line in lines)).splitlines()
    assert clean[2:] == [f"{before}ubuntu:{REMOVED}", f"{before}root:{REMOVED}", f"{before}done: it boots on"]


@given(st.randoms(use_true_random=False))
def test_secret_keys_of_aws_are_known_without_a_name(chance: random.Random) -> None:
    letters = string.ascii_letters + string.digits + "/+"
    # One of each kind, since of a thousand keys one has no digit, and is taken for something else.
    key = "".join([*"aZ7", *chance.choices(letters, k=37)])
    assert key not in scrub(f"the key {key} is wrong") or _changes(key) < 15


def _changes(text: str) -> int:
    kinds = [(c.isupper(), c.islower(), c.isdigit()) for c in text]
    return sum(one != other for one, other in itertools.pairwise(kinds))


# ------------------------------------------------------------------------------------------- honest text

_HEX = st.text("0123456789abcdef", min_size=1, max_size=64)
_WORDS = st.sampled_from(
    [
        *(
            "the",
            "machine",
            "image",
            "is",
            "not",
            "ready",
            "yet",
            "a",
            "file",
            "[",
            "OK",
            "]",
            "0.5",
            "12",
            "of",
        ),
        *("password", "passphrase", "secret", "token", "tokens", "access", "key", "keys", "pass", "AKIA"),
        *("PASSWORD,", "authentication", "methods:", "FS", "IDTOKENS", "i-0abc12", "Password:", "changed"),
        *("/etc/condor/passwords.d/POOL", "/root/.aws/credentials", "clouds.lab.password_file:", "Requests"),
        *("schedd@head.example.org", "<192.0.2.1:9618?addrs=192.0.2.1-9618&alias=head>", "ssh-ed25519"),
        *("SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", "http://192.0.2.7:8080/a@b"),
        *("ami-0123456789abcdef0", "2026-11-25T02:04:58Z"),
    ]
)
_HONEST = st.one_of(
    st.lists(_WORDS, min_size=1, max_size=12).map(" ".join),
    _HEX,
    st.uuids().map(str),
    st.lists(st.from_regex(r"[a-z]{1,9}[0-9]?", fullmatch=True), min_size=1, max_size=9).map(
        lambda parts: "/" + "/".join(parts)
    ),
    st.from_regex(r"(i|ami|sg|vol|snap)-[0-9a-f]{17}", fullmatch=True),
)
_SENTENCES = [
    "password: say --password-file, or write it into the file",
    "the password is wrong",
    "Password: ",
    "password: required",
    "root password: not set",
    "Accepted password for root from 192.0.2.1 port 22 ssh2",
    "Failed password for invalid user admin from 192.0.2.1 port 22 ssh2",
    "[  OK  ] Started systemd-ask-password-console.path - Dispatch Password Requests to Console.",
    "SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS, PASSWORD",
    "AWS_SECRET_ACCESS_KEY is not set; the access key is missing",
    "clouds.lab.password: Extra inputs are not permitted",
    "token: 3 days, issued by head.example.org",
    "session token: expired",
    "tests: passed=12 failed=3 pass=12",
    "PasswordAuthentication no",
    "lock_passwd: true",
    "password: $OS_PASSWORD",
    "password: ********",
    "the secret is kept in /etc/condor, the password to be given is the pool's",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/share/Foo2/BarBaz/libexec9/Start.sh",
    "machine i-0abc is 10.0.0.1, in zone us-east-1a, of flavor m5.2xlarge, for $0.38",
    "kept for ghosts: nothing, $HOME, $1, ${PATH}",
    "git@github.com:owner/name.git, ssh://git@example.org/x, https://example.org/?a=b@c",
]


@pytest.mark.parametrize("text", _SENTENCES)
def test_honest_sentences_stay(text: str) -> None:
    assert scrub(text) == text
    assert scrub(f"{text}\n{text} and so on") == f"{text}\n{text} and so on"


@given(_HONEST)
@example("Password: the")
def test_honest_words_stay(text: str) -> None:
    if any(word.endswith("assword:") for word in text.split(" ")[-2:-1]):
        return  # a last word after "password:" is one
    assert _without_last(scrub(text), text)


def _without_last(clean: str, text: str) -> bool:
    """The same; a single word that ends a line after "Password:" may be one, as far as anybody can tell."""
    said = ("Password:", "password_file:")
    words, kept = text.split(" "), clean.replace(REMOVED, "\0").split(" ")
    return len(words) == len(kept) and all(
        one == other or (other == "\0" and before in said and not one.isalpha())
        for before, one, other in zip(["", *words], words, kept, strict=False)
    )


@pytest.mark.parametrize("page", ["docs/reference/reasons.md", "docs/reference/errors.md", "CHANGELOG.md"])
def test_what_updraft_itself_says_stays(page: str) -> None:
    for line in (Path(__file__).parents[2] / page).read_text(encoding="utf-8").splitlines():
        assert scrub(line) == line


# -------------------------------------------------------------------------------------------- documents

_TEXTS = st.one_of(
    st.text(),
    st.sampled_from([text for text, _ in SAID]),
    st.text("\"'\\\n :=passwordeyJ.AKIA$", max_size=60),
)
_KEYS = st.sampled_from(["said", "a b", "adminPass", "password", "token", "", "id"])
_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(_DOCUMENTS)
@example({"adminPass": "geheim", "other": ["password: hunter2", {KEY_ID: 1}]})
@example(SECRET + " \n" + SECRET)
def test_a_document_stays_one_and_says_nothing_after_a_second_time(document: object) -> None:
    clean = scrubbed(document)
    assert scrubbed(clean) == clean
    if not suspicious(json.dumps(document)):
        assert clean == json.loads(json.dumps(document))


@given(_TEXTS)
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    assert scrub(scrub(text)) == scrub(text)


def test_the_ledger_keeps_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        for number, (text, _) in enumerate(SAID):
            ledger.keep_console("lab", f"i-{number}", text, 1.0)
            ledger.event(
                1.0, "failed", f"i-{number}", Reason("boot", text), {"said": [text], "adminPass": "geh3im"}
            )
            ledger.note(f"note-{number}", {"said": text}, 1.0)
    kept = (
        path.read_bytes() + Path(f"{path}-wal").read_bytes()
        if Path(f"{path}-wal").exists()
        else path.read_bytes()
    )
    assert b"geh3im" not in kept
    for _, secret in SAID:
        assert secret.encode() not in kept


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_holds_no_secret_and_stays_json(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    import structlog

    # A key without its beginning is known only at the beginning of a text.
    told = [(text, secret) for text, secret in SAID if "END RSA" not in text and text != PRIVATE] + [
        (PRIVATE, "Jlbn")
    ]
    try:
        serving.start_log(form)
        for text, _ in told:
            structlog.get_logger().warning(
                f"the cloud said: {text}", error=ValueError(text), adminPass="geh3im"
            )
    finally:
        structlog.reset_defaults()
    said = capsys.readouterr().err
    assert said
    assert "geh3im" not in said
    for _, secret in told:
        assert secret not in said
    if form == "json":
        assert len([json.loads(line) for line in said.splitlines()]) == len(told)


@pytest.mark.parametrize(
    "part",
    [
        "eyJ",
        "eyJeyJ.",
        "password",
        "password: ",
        "secret_",
        "A1a/",
        "-----BEGIN PRIVATE KEY-----",
        "a.b-",
        "$6$",
        "://a:",
    ],
)
def test_a_hostile_console_takes_no_time(part: str) -> None:
    text = part * (64 * 1024 // len(part))
    begun = time.process_time()
    scrub(text)
    assert time.process_time() - begun < 2.0
