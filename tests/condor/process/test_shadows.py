"""Which process is the shadow of a job, told from the process table."""

import os
from pathlib import Path

from updraft.condor.process.shadows import shadows_of

BOOT = 1_000_000
SCHEDD = "<10.0.0.1:9618?addrs=10.0.0.1-9618&noUDP&sock=schedd_7_aa>"
SAME = "<10.0.0.1:9618?noUDP&sock=schedd_7_aa&addrs=10.0.0.1-9618>"
OTHER = SCHEDD.replace("schedd_7_aa", "schedd_8_bb")
IN_A_CONTAINER = SCHEDD.replace("10.0.0.1", "10.0.0.2")


def table(proc: Path, *rows: tuple[int, str, str, str, float]) -> Path:
    """(pid, program, job, schedd, seconds since the boot) for each process."""
    (proc / "stat").write_text(f"cpu 1 2 3\nbtime {BOOT}\n")
    for pid, program, job, schedd, start in rows:
        folder = proc / str(pid)
        folder.mkdir()
        (folder / "cmdline").write_text("\0".join([program, job, f"--schedd={schedd}", "-", ""]))
        ticks = round(start * os.sysconf("SC_CLK_TCK"))
        (folder / "stat").write_text(f"{pid} (a (b) c) S 1 " + "0 " * 17 + f"{ticks} 0")
    return proc


def test_only_the_one_that_was_born_for_this_job_is_found(tmp_path: Path) -> None:
    proc = table(
        tmp_path,
        (10, "condor_shadow", "3.1", SAME, 100.5),
        (11, "/usr/sbin/condor_shadow", "3.1", SCHEDD, 40.0),  # born for it earlier, at work for another now
        (12, "condor_shadow", "3.10", SCHEDD, 100.5),
        (13, "condor_shadow", "3.1", OTHER, 100.5),
        (14, "sleep", "3.1", SCHEDD, 100.5),
        (17, "condor_shadow", "3.1", IN_A_CONTAINER, 100.5),
    )
    (tmp_path / "15").mkdir()  # has ended between the listing and the look
    table(tmp_path, (16, "condor_shadow", "", "", 100.5))
    (tmp_path / "16" / "cmdline").write_text("condor_shadow")  # anybody may call a process so
    births = {"3.1": BOOT + 100.0, "3.10": BOOT + 40.0, "3.2": BOOT + 100.0}
    assert list(shadows_of(SCHEDD, births, proc)) == [10]


def test_who_names_his_process_as_he_likes_keeps_no_shadow_from_being_found(tmp_path: Path) -> None:
    proc = table(tmp_path, (10, "condor_shadow", "3.1", SCHEDD, 100.5))
    for pid, name in (("7", b"\xff\xfe"), ("8", b"a) S 1 (b"), ("9", b"a\n)"), ("11", b"\x85\xe2\x80")):
        (proc / pid).mkdir()
        (proc / pid / "cmdline").write_bytes(b"\xff\x003.1")
        (proc / pid / "stat").write_bytes(pid.encode() + b" (" + name + b") S 1 " + b"0 " * 17 + b"1 0")
    assert list(shadows_of(SCHEDD, {"3.1": BOOT + 100.0}, proc)) == [10]


def test_a_job_that_says_no_birth_has_none(tmp_path: Path) -> None:
    proc = table(tmp_path, (10, "condor_shadow", "3.1", SCHEDD, 100.5))
    assert list(shadows_of(SCHEDD, {"3.1": 0.0}, proc)) == []
