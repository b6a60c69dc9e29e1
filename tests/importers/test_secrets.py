"""What `updraft import` takes for a secret in the text of a script or a cloud-config, and what it leaves."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from updraft.importers.formats.secrets import MASK, masked

CANARY = "canary-1x"

FORMS = {
    "chpasswd of a pipe": "echo 'anna:canary-1x' | chpasswd",
    "chpasswd of printf": r"printf 'anna:canary-1x\n' | sudo chpasswd -e",
    "chpasswd of a here-string": "chpasswd <<< anna:canary-1x",
    "chpasswd of a here-document": "chpasswd <<EOF\nanna:canary-1x\nben:canary-1x\nEOF\necho done",
    "chpasswd of cloud-config": "chpasswd:\n  expire: no\n  list: |\n    root:canary-1x\n    ben:canary-1x\n",
    "chpasswd of cloud-config, a list": "chpasswd:\n  list:\n    - root:canary-1x\n    - b:canary-1x\nx: y\n",
    "chpasswd of cloud-config, one line": 'chpasswd: { list: "root:canary-1x", expire: false }',
    "chpasswd of cloud-config, users": (
        "chpasswd:\n  users:\n    - {name: ben, password: canary-1x, type: text}\n"
    ),
    "users of CernVM": "[cernvm]\nusers=anna:atlas:canary-1x\n",
    "two users of CernVM": "[cernvm]\nusers = anna:atlas:canary-1x,ben:cms:canary-1x\n",
    "key of CernVM": "[cernvm]\ncontextualization_key=canary-1x\n",
    "PASS": "PASS=canary-1x",
    "PASS, exported": "export PASS='canary-1x'",
    "PASS with a comma": "PASS=a,canary-1x",
    "DB_PASS": "DB_PASS=canary-1x ./run",
    "PGPASSWORD": "PGPASSWORD=canary-1x psql",
    "MYSQL_PWD": "export MYSQL_PWD=canary-1x",
    "mysql -p": "mysql -uroot -pcanary-1x mysql < x.sql",
    "mysqladmin -p": "mysqladmin -u root -p'canary-1x' status",
    "mysql in SQL": "mysql -e \"CREATE USER u IDENTIFIED BY 'canary-1x'\"",
    "sshpass -p": "sshpass -p canary-1x scp a b:",
    "sshpass -p together": "sshpass -pcanary-1x scp a b:",
    "sshpass -p in quotes": 'sshpass -p "canary-1x" scp a b:',
    "docker login": "docker login -u anna -p canary-1x registry",
    "useradd -p": "useradd -m -p canary-1x anna",
    "openssl": "openssl rsa -passin pass:canary-1x",
    "wget": "wget --http-password canary-1x https://x",
    "an option called key": "tool --api-key=canary-1x",
    "a header": "curl -H 'Authorization: Bearer canary-1x' https://x",
    "another header": "curl -H 'X-Auth-Token: canary-1x' https://x",
    "netrc": "machine x login anna password canary-1x",
    "a mount": "mount -t cifs -o username=a,password=canary-1x //x /y",
    "a slash in front": "AWS_SECRET_ACCESS_KEY=/canary-1x",
    "a slash in front, in YAML": "secret_key: /canary-1x",
    "a key called key": "key=canary-1x",
    "a name that ends like a place": "secret_id: canary-1x",
    "a default of a variable": "PASS=${PASS:-canary-1x}",
    "a command": 'PASS="$(echo canary-1x)"',
    "more than one word": "password: correct canary-1x staple",
    "a comment behind": "password: canary-1x   # of the database",
    "a block of YAML": "secret: |\n  canary-1x\n  canary-1x\nnext: x\n",
    "a list of YAML": "passwords: [canary-1x, canary-1x]",
    "quotes that are escaped": r'"password": "a\"canary-1x"',
    "condor_store_cred": "condor_store_cred -c add -p canary-1x",
    "ini": "[condor]\ncondor_secret = canary-1x",
    "basic authentication": "curl https://anna:canary-1x@example.org/x",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_secret_is_left_out_whatever_form_it_has(text: str) -> None:
    clean, lines = masked(text)
    assert CANARY not in clean
    assert MASK in clean
    told = {number for number, line in enumerate(text.split("\n"), 1) if CANARY in line}
    assert told <= set(lines), "each line is named"
    assert clean.count("\n") == text.count("\n"), "what stands below has the number it had"


@pytest.mark.parametrize(
    "text",
    [
        "lock_passwd: true",
        "chpasswd: { expire: False }",
        "ssh_pwauth: false",
        "PASS=$1",
        "PASS=${DB_PASS}",
        'PASS="$(cat /run/pass)"',
        "password:",
        "condor_master = %ipv4%",
        "mkdir -p /software/tokens",
        "mysql -u root -p < x.sql",
        "tar -C / -xpf x.tar",
        "users:\n  - name: anna\n    groups: wheel\n",
        "ssh_authorized_keys:\n  - ssh-ed25519 AAAAC3Nz anna@x\n",
        "token_directory: /etc/condor/tokens.d",
        "credential_file = /run/credentials/x",
        "cp -p a b",
        "docker run -p 80:80 x",
    ],
)
def test_what_holds_no_secret_stays(text: str) -> None:
    assert masked(text) == (text, ())


@given(
    name=st.from_regex(r"[A-Za-z_]{0,5}(key|KEY|secret|Secret|pass|PASS)[A-Za-z_]{0,5}", fullmatch=True),
    sign=st.sampled_from(["=", ": ", " = ", '="', ": '"]),
    value=st.from_regex(r"[/A-Za-z0-9+.~-][A-Za-z0-9/+=._~-]{5,40}", fullmatch=True),
)
@example("PASSAAAAA", "=", "SAAAAA")
def test_what_has_key_secret_or_pass_in_its_name_is_never_harmless(name: str, sign: str, value: str) -> None:
    end = sign[-1] if sign[-1] in "\"'" else ""
    clean, lines = masked(f"{name}{sign}{value}{end}")
    assert value not in clean.removeprefix(name)  # a name may hold it, too
    assert lines == (1,)
