"""The accounts of a worker's slots, and what is taken away between two jobs of one: on the kernel itself."""

import os
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from tests.rigs.reading import worker, written
from updraft.bootstrap import worker_user_data

SHIPPED = Path(str(files("updraft.bootstrap").joinpath("files")))
FIRST = 2_100_000_000

# A machine of its own, with nobody else's processes, objects, keys or files within reach of what is tried.
MACHINE = """set -e
PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount --make-rprivate /
mount -t tmpfs none /mnt
for place in etc usr/local var; do
    mkdir -p /mnt/up/$place /mnt/spare/$place
    mount -t overlay none -o lowerdir=/$place,upperdir=/mnt/up/$place,workdir=/mnt/spare/$place /$place
done
mkdir -p /usr/local/lib/updraft /usr/local/bin
for script in starter accounts; do cp {shipped}/$script.sh /usr/local/lib/updraft/$script; done
cp {shipped}/forget_keys.py /usr/local/lib/updraft/forget-keys
chmod 755 /usr/local/lib/updraft/* /mnt
for folder in /run /tmp /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 none $folder; done
mount --bind /dev/null /dev/console
mkdir -m 1777 /run/lock; mkdir -p /mnt/execute /mnt/log /run/user; ln -s execute /mnt/link
rm -f /etc/cron.deny /etc/at.deny
printf 'at:x:1:1::/:/bin/sh\\n' >/etc/passwd; printf 'at:x:1:\\n' >/etc/group
cat >/usr/local/bin/condor_config_val <<'S'
#!/bin/sh
case $1 in NUM_CPUS) echo ${{CPUS-4}} ;; LOG) echo /mnt/log ;; *) echo /mnt/link ;; esac
S
cat >/usr/local/bin/condor_starter <<'S'
#!/bin/sh
echo "started as ${{_condor_NOBODY_SLOT_USER:-nobody}} with $*"
S
chmod 755 /usr/local/bin/*
accounts() {{ sh /usr/local/lib/updraft/accounts "$@"; }}
starter() {{ /usr/local/lib/updraft/starter -f -local-name slot_type_1 "$@" head.test; }}
"""


def on_a_machine(script: str) -> list[str]:
    """The lines that a script prints there; it has to succeed."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    command = ["unshare", "-m", "-p", "-i", "-n", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
    done = subprocess.run(
        [*command, MACHINE.format(shipped=SHIPPED) + script], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_worker_has_the_scripts_and_its_startd_starts_ours() -> None:
    found = written(worker_user_data(worker()))
    config = found["/etc/condor/config.d/90-updraft.conf"]["content"].splitlines()
    assert "STARTER = /usr/local/lib/updraft/starter" in config
    assert found["/usr/local/lib/updraft/starter"]["permissions"] == "0755"
    assert "DEDICATED_EXECUTE_ACCOUNT_REGEXP = updraft-slot[0-9_]+" in config
    assert "STARTER_ALLOW_RUNAS_OWNER = False" in config


@pytest.mark.integration
def test_a_boot_makes_all_accounts_at_once_and_a_later_one_only_those_that_are_missing() -> None:
    *names, count = on_a_machine(
        "accounts; cut -d: -f1 /etc/passwd >/tmp/names; CPUS=5; export CPUS; accounts; accounts\n"
        "cat /tmp/names; wc -l </etc/passwd"
    )
    ours = [name for name in names if name != "at"]
    both = {f"updraft-slot{n}" for n in range(1, 9)} | {f"updraft-slot1_{n}" for n in range(1, 9)}
    assert sorted(ours) == sorted(both), "twice as many of either kind as there are processors"
    assert int(count) == 1 + 20


@pytest.mark.integration
def test_an_account_has_a_number_and_group_of_its_own_no_password_and_no_cron() -> None:
    user, group, *others = on_a_machine(
        "touch /etc/at.deny; accounts slot1_12\n"
        "grep slot /etc/passwd; grep slot /etc/group; cat /etc/cron.deny /etc/at.deny"
    )
    number = FIRST + 10_012
    assert user == f"updraft-slot1_12:*:{number}:{number}::/nonexistent:/usr/sbin/nologin"
    assert group == f"updraft-slot1_12:*:{number}:"
    assert others == ["updraft-slot1_12"] * 2


@pytest.mark.integration
def test_no_two_slots_have_one_number() -> None:
    lines = on_a_machine(
        "for x in 1 2 11 12 999; do accounts slot$x slot${x}_1 slot${x}_2 slot${x}_12 slot${x}_9999; done\n"
        "cut -d: -f3 /etc/passwd"
    )
    assert len(lines) == len(set(lines)) == 26
    assert max(map(int, lines)) < 2**31


@pytest.mark.integration
def test_starters_that_begin_together_make_an_account_once() -> None:
    lines = on_a_machine(
        "for n in 1 2 3 4 5 6 7 8; do\n"
        "starter -a slot1_1 >/dev/null & starter -a slot2_$n >/dev/null & done; wait\n"
        "cut -d: -f1 /etc/passwd | sort"
    )
    assert lines == ["at", "updraft-slot1_1", *(f"updraft-slot2_{n}" for n in range(1, 9))]


@pytest.mark.integration
@pytest.mark.parametrize(
    "slot", ["", "root", "slot", "slot0", "slot1_", "slot1_1x", "slot1_1:0", "slot1 2", ".*", "slot1_."]
)
def test_a_slot_of_an_odd_name_starts_nothing(slot: str) -> None:
    said, *names = on_a_machine(f"accounts slot1_1; starter -a '{slot}' || :; cut -d: -f1 /etc/passwd")
    assert said == f"updraft-starter: the slot '{slot}' can have no account"
    assert names == ["at", "updraft-slot1_1"]


@pytest.mark.integration
def test_the_starter_becomes_htcondors_own_with_the_slots_account() -> None:
    assert on_a_machine("starter -a slot1_3; /usr/local/lib/updraft/starter -classad") == [
        "started as updraft-slot1_3 with -f -local-name slot_type_1 -a slot1_3 head.test",
        "started as nobody with -classad",
    ]


def test_the_starter_looks_for_programs_where_it_says_itself(tmp_path: Path) -> None:
    """find refuses -execdir where a part of PATH is empty or relative, and then no job would ever begin."""
    script = (SHIPPED / "starter.sh").read_text(encoding="utf-8").partition("# So it asks")[0]
    script += f"find {tmp_path}/ -mindepth 1 -prune -execdir rm -rf -- {{}} +\n"
    for given in ("", ":", "here:/usr/bin", "/usr/bin::/bin", "/nowhere"):
        (tmp_path / "left").touch()
        done = subprocess.run(
            ["/bin/sh", "-c", script], env={"PATH": given}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (0, "", []), given


@pytest.mark.integration
@pytest.mark.parametrize("given", [":$PATH", "$PATH:", "$PATH::/opt", "bin:$PATH"])
def test_what_was_left_is_taken_away_whatever_path_the_startd_has(given: str) -> None:
    said = f"accounts slot1_3; touch /tmp/left; chown updraft-slot1_3 /tmp/left; PATH={given}\n"
    assert on_a_machine(said + "starter -a slot1_3; ls /tmp") == [
        "started as updraft-slot1_3 with -f -local-name slot_type_1 -a slot1_3 head.test"
    ]


@pytest.mark.integration
def test_no_job_gains_rights_by_a_setuid_program() -> None:
    said = "printf '#!/bin/sh\\ngrep NoNewPrivs /proc/self/status\\n' >/usr/local/bin/condor_starter\n"
    assert [line.split() for line in on_a_machine(said + "starter -a slot1_3")] == [["NoNewPrivs:", "1"]]


# What two accounts leave, and what is there of it afterwards. A number's keys are one kernel's, and a machine
# of the cloud on this machine takes away those of its own slots: no pool has so many slots as to have these.
LEAVE = """
starter -a slot777_1 >/dev/null; starter -a slot777_2 >/dev/null
mkdir -m 777 /tmp/.X11-unix /mnt/execute/dir_1
for n in 1 2; do
    id=$((2107770000 + n))
    as() { setpriv --reuid $id --regid $id --clear-groups "$@"; }
    for place in /tmp /var/tmp /dev/shm /run/lock /tmp/.X11-unix; do
        as sh -c "mkdir -p $place/of$n/deep && touch $place/of$n/deep/file $place/file$n"
    done
    mkdir /mnt/execute/dir_$n$n; touch /mnt/execute/dir_$n$n/file; chown -R $id /mnt/execute/dir_$n$n
    touch /mnt/execute/dir_1/scratch$n; chown $id /mnt/execute/dir_1/scratch$n
    as sh -c 'setsid sleep 300 & setsid sleep 300 &'
    as python3 -I -c 'import ctypes
call = ctypes.CDLL(None).syscall
assert call(248, b"user", b"word", b"secret", 6, -4) > 0'
done
"""
LEFT = """
cd /; find tmp var/tmp dev/shm run/lock mnt/execute | grep -E 'of|file|scratch|_' | sort
for n in 1 2; do echo "processes $n: $(grep -l "^Uid:.*210777000$n" /proc/[0-9]*/status | wc -l)"; done
for n in 1 2; do id=$((2107770000 + n))
    setpriv --reuid $id --regid $id --clear-groups python3 -I -c 'import ctypes
found = ctypes.CDLL(None).syscall(250, 10, -4, b"user", b"word", 0)
print("a key" if found > 0 else "no key")'
done
"""


@pytest.mark.integration
def test_what_an_account_has_left_is_gone_before_its_next_job_and_what_is_anothers_stays() -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of these calls are those of x86_64")
    before = on_a_machine(LEAVE + LEFT)
    after = on_a_machine(LEAVE + "starter -a slot777_1 >/dev/null\n" + LEFT)
    assert before[-4:] == ["processes 1: 2", "processes 2: 2", "a key", "a key"]
    assert after[-4:] == ["processes 1: 0", "processes 2: 2", "no key", "a key"]
    of_one = [line for line in before[:-4] if "of1" in line or "file1" in line or "scratch1" in line]
    of_one += ["mnt/execute/dir_11", "mnt/execute/dir_11/file"]
    assert len(of_one) > 15
    assert after[:-4] == [line for line in before[:-4] if line not in of_one]


@pytest.mark.integration
def test_what_cannot_be_taken_away_lets_no_job_begin_and_is_said() -> None:
    lines = on_a_machine(
        "starter -a slot1_1 >/dev/null\n"
        "mkdir /run/lock/kept; mount -t tmpfs -o uid=2100010001 none /run/lock/kept\n"
        "starter -a slot1_1 || :; starter -a slot1_2"
    )
    assert lines == [
        "updraft-starter: what an earlier job has left in /run cannot be removed",
        "started as updraft-slot1_2 with -f -local-name slot_type_1 -a slot1_2 head.test",
    ]


@pytest.mark.integration
def test_no_job_begins_beside_a_process_that_an_earlier_one_has_left() -> None:
    lines = on_a_machine(
        "starter -a slot1_1 >/dev/null\n"
        # Of the account, and not its own to kill.
        "python3 -I -c 'import os, time; os.setresuid(0, 2100010001, 0); time.sleep(300)' & pid=$!\n"
        "until grep -q '^Uid:.*2100010001' /proc/$pid/status; do :; done\n"
        "printf '#!/bin/sh\\necho >>/tmp/slept' >/usr/local/bin/sleep; chmod 755 /usr/local/bin/sleep\n"
        "starter -a slot1_1 || :; wc -l </tmp/slept; starter -a slot1_2\n"
        "printf '#!/bin/sh\\nkill -KILL '$pid >/usr/local/bin/sleep\n"
        "starter -a slot1_1"
    )
    assert lines == [
        "updraft-starter: processes that an earlier job has left cannot be ended",
        "99",
        "started as updraft-slot1_2 with -f -local-name slot_type_1 -a slot1_2 head.test",
        "started as updraft-slot1_1 with -f -local-name slot_type_1 -a slot1_1 head.test",
    ]


HOPPING = """\
import os
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
"""


@pytest.mark.integration
def test_what_forks_and_ends_faster_than_one_can_look_is_ended_too() -> None:
    lines = on_a_machine(
        "starter -a slot1_1 >/dev/null\n"
        f"cat >/tmp/hop <<'S'\n{HOPPING}S\n"
        "for n in 1 2 3; do setpriv --reuid 2100010001 --regid 2100010001 --clear-groups "
        "python3 -I /tmp/hop & wait; done\n"
        "starter -a slot1_1; grep -l '^Uid:.*2100010001' /proc/[0-9]*/status 2>/dev/null | wc -l"
    )
    assert lines == ["started as updraft-slot1_1 with -f -local-name slot_type_1 -a slot1_1 head.test", "0"]


LOCKING = """\
import fcntl, os, time
held = []
for top in ("/etc", "/run", "/usr/local"):
    for folder, _, names in os.walk(top):
        for path in (os.path.join(folder, name) for name in names):
            try:
                file = open(path)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held.append(file)
            except OSError:
                continue
assert "/etc/passwd" in [file.name for file in held]
open("/tmp/locked", "w").close()
time.sleep(300)
"""


@pytest.mark.integration
def test_a_job_that_locks_all_that_it_can_read_keeps_no_slot_from_an_account() -> None:
    lines = on_a_machine(
        f"accounts slot1_1; cat >/tmp/lock <<'S'\n{LOCKING}S\n"
        "setpriv --reuid 2100010001 --regid 2100010001 --clear-groups python3 -I /tmp/lock &\n"
        "until [ -e /tmp/locked ]; do kill -0 $!; done\n"
        "timeout 20 sh /usr/local/lib/updraft/accounts slot1_2 || echo failed\n"
        "grep -c slot /etc/passwd; stat -c '%a %U' /run/updraft-accounts; stat -c %a /etc/cron.deny"
    )
    assert lines == ["2", "600 root", "644"]


@pytest.mark.integration
def test_htcondors_logs_are_closed_to_the_accounts() -> None:
    assert on_a_machine("accounts slot1_1; stat -c %a /mnt/log") == ["750"]
    failed = on_a_machine("rmdir /mnt/log; accounts slot1_1 2>/dev/null || grep -c slot /etc/passwd || :")
    assert failed == ["0"], "no account where they can't be closed"


@pytest.mark.integration
def test_keys_that_cannot_be_taken_away_let_no_job_begin() -> None:
    lines = on_a_machine(
        LEAVE + "printf 'import sys; sys.exit(1)' >/usr/local/lib/updraft/forget-keys\n"
        "starter -a slot777_1 || :; starter -a slot777_3"
    )
    assert lines == [
        "updraft-starter: keys that an earlier job has left cannot be removed",
        "started as updraft-slot777_3 with -f -local-name slot_type_1 -a slot777_3 head.test",
    ]


@pytest.mark.integration
def test_each_job_has_system_v_objects_of_its_own() -> None:
    spaces = on_a_machine(
        "printf '#!/bin/sh\\nreadlink /proc/self/ns/ipc\\n' >/usr/local/bin/condor_starter\n"
        "starter -a slot1_1; starter -a slot1_1; readlink /proc/self/ns/ipc"
    )
    assert spaces[2] not in spaces[:2], "a number may be given again once it is free"


# A job that still runs watches for root to look, and puts a link in the place of a folder of its own.
SWAPPED = """
starter -a slot777_1 >/dev/null; starter -a slot777_2 >/dev/null
mkdir -p /mnt/others/gone; echo kept >/mnt/others/gone/file
setpriv --reuid 2107770002 --clear-groups sh -c 'umask 0; mkdir -p /run/lock/D/d'
setpriv --reuid 2107770001 --clear-groups mkdir /run/lock/D/d/gone
cat >/usr/local/bin/rm <<'S'
#!/bin/sh
case $* in *gone*) mv /run/lock/D/d /run/lock/D/old; ln -s /mnt/others /run/lock/D/d ;; esac
exec /bin/rm "$@"
S
chmod 755 /usr/local/bin/rm
starter -a slot777_1 >/dev/null
cat /mnt/others/gone/file
[ -e /run/lock/D/old/gone ] || echo removed
"""


@pytest.mark.integration
def test_what_is_taken_away_is_no_other_thing_of_the_same_name() -> None:
    assert on_a_machine(SWAPPED) == ["kept", "removed"]
