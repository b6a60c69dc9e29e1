"""What a machine image must not carry: what is taken out of it, and what it is looked through for.

Patterns are those of Python's `glob`; texts are regular expressions over the bytes of files.
"""

from collections.abc import Mapping

_HOMES = ("/root", "/home/*", "/var/lib/condor")


def _at_home(*names: str) -> tuple[str, ...]:
    return tuple(f"{home}/{name}" for home in _HOMES for name in names)


REMOVED: tuple[str, ...] = (
    # of updraft and its pool
    "/etc/condor/config.d/*updraft*",
    "/etc/condor/tokens.d/*",
    "/etc/condor/passwords.d/*",
    "/etc/systemd/system/updraft-*.service",
    "/etc/systemd/system/*.wants/updraft-*.service",
    "/etc/systemd/system/condor.service.d/updraft*.conf",
    "/etc/updraft",
    "/usr/local/lib/updraft",
    "/var/lib/updraft",
    "/var/lib/updraft-machine",
    # of the jobs that ran
    "/var/lib/condor/execute/*",
    "/var/lib/condor/spool/*",
    "/var/log/condor/*",
    # of this one machine
    "/etc/ssh/ssh_host_*",
    "/var/lib/cloud/*",
    "/var/lib/dbus/machine-id",
    "/var/lib/systemd/random-seed",
    "/var/lib/systemd/credential.secret",
    "/var/lib/dhcp/*",
    "/var/lib/dhclient/*",
    "/var/lib/NetworkManager/*lease*",
    "/etc/netplan/50-cloud-init.yaml",
    "/etc/udev/rules.d/70-persistent-net.rules",
    "/var/log/journal/*",
    "/var/log/cloud-init*",
    "/var/log/updraft*",
    # rotated or compressed, and what the kernel took down of programs: their arguments, all of their memory
    "/var/log/*.[0-9]*",
    "/var/log/*.gz",
    "/var/log/audit/*",
    "/var/lib/systemd/coredump/*",
    "/var/crash/*",
    "/var/cache/apt/archives/*.deb",
    "/tmp/*",  # noqa: S108
    "/tmp/.[!.]*",  # noqa: S108
    "/var/tmp/*",  # noqa: S108
    # of people
    *_at_home(
        ".bash_history",
        ".zsh_history",
        ".python_history",
        ".lesshst",
        ".viminfo",
        ".wget-hsts",
        ".cache",
        ".condor/tokens.d",
        ".ssh/authorized_keys",
        ".ssh/known_hosts*",
    ),
)
EMPTIED: tuple[str, ...] = (
    "/etc/machine-id",
    "/var/log/*",
)

FILES: Mapping[str, tuple[str, ...]] = {
    "a key of a person": _at_home(".ssh/id_*", ".ssh/*.pem", ".gnupg/private-keys-v1.d/*", ".globus/*key*"),
    "a key that lets somebody in": _at_home(".ssh/authorized_keys"),
    "a key of this machine": ("/etc/ssh/ssh_host_*_key", "/etc/krb5.keytab", "/etc/grid-security/*key*"),
    "a token or key of HTCondor": (
        "/etc/condor/tokens.d/*",
        "/etc/condor/passwords.d/*",
        *_at_home(".condor/tokens.d/*"),
    ),
    "credentials of a cloud": (
        "/etc/openstack/*.yaml",
        "/etc/openstack/*.json",
        "/etc/boto.cfg",
        *_at_home(".aws/credentials", ".aws/*/cache/*", ".boto", ".s3cfg", ".config/rclone/rclone.conf"),
        *_at_home(".config/openstack/*.yaml", ".config/openstack/*.json", "clouds.yaml"),
        *_at_home(".config/gcloud/*.json", ".config/gcloud/*.db", ".azure/*.json"),
        *_at_home("*openrc*.sh", "ec2rc.sh", ".updraft/credential*"),
    ),
    "other credentials": _at_home(
        ".netrc",
        ".git-credentials",
        ".docker/config.json",
        ".pgpass",
        ".kube/config",
        ".pypirc",
        ".vault-token",
        ".config/gh/hosts.yml",
    ),
    "what a person typed": _at_home(
        ".*_history", ".history", ".local/share/fish/fish_history", ".ipython/profile_*/history.sqlite"
    ),
    "user-data of a launch": ("/var/lib/cloud/instances/*/user-data*",),
    "the id of this machine": ("/etc/machine-id",),
}
_VALUE = (
    r"['\"]?\s*[=:]\s*['\"]?"  # between a name and what it is set to, in JSON, YAML, shells and ini files
)
_PASSWORD = rf"\bpassword{_VALUE}[^\s'\"$<{{]{{4,}}"
TEXTS: Mapping[str, str] = {
    "a private key": (
        # Its lines may be one with \n in it, and it may be encrypted.
        r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(\s|\\[nr])+"
        r"([A-Za-z-]+: [^\n]{0,80}\s+){0,3}[A-Za-z0-9+/=]{40}"
        r"|PuTTY-User-Key-File-[0-9]: "
    ),
    "a token": (
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}"
        r"|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{50,}|\bglpat-[A-Za-z0-9_-]{20}"
    ),
    "an AWS key": (rf"(?i:secret_?access_?key|ec2_secret_key){_VALUE}[A-Za-z0-9/+]{{40}}(?![A-Za-z0-9/+])"),
    "credentials of OpenStack": (
        rf"application_credential_secret{_VALUE}[A-Za-z0-9_-]{{20,}}"
        r"|OS_(PASSWORD|TOKEN|APPLICATION_CREDENTIAL_SECRET)=['\"]?[^\s'\"$]{4,}"
        rf"|\bauth_url['\"]?\s*:[\s\S]{{0,400}}?{_PASSWORD}"
        rf"|{_PASSWORD}[\s\S]{{0,400}}?\bauth_url['\"]?\s*:"
    ),
    "credentials of another cloud": (
        rf"(?i:client_?secret){_VALUE}[A-Za-z0-9~._-]{{30,}}|\"refresh_token\"\s*:\s*\"[^\"]{{20,}}"
    ),
}
PLACES: tuple[str, ...] = (
    "/etc",
    "/root",
    "/home",
    "/srv",
    "/opt",
    "/usr/local/etc",
    "/usr/local/bin",
    "/usr/local/share",
    "/var/backups",
    "/var/www",
    "/var/lib/cloud",
    "/var/lib/condor",
    "/var/spool",
)
PASSED_OVER: tuple[str, ...] = ("/opt/updraft",)
"""Folders there that aren't searched: libraries of updraft itself, with made-up keys in their own tests."""
LARGEST = 1 << 18
"""Bytes of the largest file that is read: credentials are small."""
