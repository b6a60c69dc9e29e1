"""What befalls the controller and the host that it runs on."""

from pathlib import Path

from tests.chaos.troubles import controller
from tests.chaos.troubles.script import Happening
from tests.chaos.troubles.world import SERVICE, STATE, Does, End, World, drawn

DISK_MIB = 48
STEPS = (
    *("plan: before the records", "plan: recorded"),
    *("launch: before the intent", "launch: intended", "launch: prepared", "launch: asked"),
    *("launch: recorded", "launch: failed"),
    *("drain: before the tag", "drain: tagged", "drain: recorded", "drain: asked", "drain: accepted"),
    *("terminate: before the record", "terminate: recorded", "terminate: asked"),
)
"""Where the actor may be when it dies, by the names that it gives them."""
DROP_IN = """\
[Service]
Environment=PYTHONPATH=/opt/updraft/src:/opt/updraft/lib
ExecStart=
ExecStart=/usr/bin/python3 /root/controller.py
RestartSec=1
"""
SECOND = "/root/second"
SECOND_LOG = "/var/log/updraft-second.log"
# The whole state on a small disk of its own, and the daemon with its steps and its clock.
ARRANGE = f"""set -e
mkdir -p /run/chaos /etc/systemd/system/updraft.service.d
cat >/etc/systemd/system/updraft.service.d/chaos.conf
systemctl stop updraft
mkdir /run/chaos/was
cp -a {STATE}/. /run/chaos/was/
mount -t tmpfs -o size={DISK_MIB}m,mode=700 state {STATE}
cp -a /run/chaos/was/. {STATE}/
"""
KILL = f"kill -9 $(cat {SERVICE}.keep) || :; kill -9 $(cat {SERVICE}.main) || :; rm -f {SERVICE}.*"
START = "systemctl start updraft"


def arranged(world: World) -> None:
    """Prepare the head for what is to befall it."""
    program = Path(controller.__file__).read_text()
    world.sh("umask 077; cat >/root/controller.py", stdin=program)
    world.sh(ARRANGE, stdin=DROP_IN)
    world.sh(START)


def killed(world: World, one: Happening) -> End | None:
    """It dies, and is started again by what keeps it."""
    world.note(one)
    world.sh(f"kill -9 $(cat {SERVICE}.main)")
    return None


def stopped(world: World, one: Happening) -> End | None:
    """It stands still, and goes on as if nothing had been."""
    world.note(one)
    world.sh(f"kill -STOP $(cat {SERVICE}.main)")
    return lambda: world.sh(f"kill -CONT $(cat {SERVICE}.main) || :")


def at_a_step(name: str) -> Does:
    """It dies, or stands still, when it next is at a step that is drawn."""

    def does(world: World, one: Happening) -> End | None:
        step = drawn(one).choice(STEPS)
        world.note(one)
        world.sh("cat >/run/chaos/step", stdin=f"{step} {name}\n")

        def over() -> None:
            world.sh(f"rm -f /run/chaos/step; kill -CONT $(cat {SERVICE}.main) || :")

        return over

    return does


def ledger_deleted(world: World, one: Happening) -> End | None:
    """It dies, and its ledger is gone when it comes back."""
    world.note(one)
    world.sh(f"{KILL}; rm -f {STATE}/ledger*; {START}")
    return None


def ledger_old(world: World, one: Happening) -> End | None:
    """It dies, and somebody puts back a copy of the ledger that was made a while ago."""
    world.note(one)
    copy = f"/run/chaos/old-{one.number}"
    world.sh(f"mkdir {copy}; cp -a {STATE}/ledger* {copy}/")
    return lambda: world.sh(f"{KILL}; rm -f {STATE}/ledger*; cp -a {copy}/. {STATE}/; rm -r {copy}; {START}")


def ledger_damaged(world: World, one: Happening) -> End | None:
    """It dies, and its disk has garbage where the ledger was; after a while somebody moves the file away."""
    world.note(one)
    garbage = f"dd if=/dev/urandom of={STATE}/ledger.sqlite bs=1000 count=40 seek=1 conv=notrunc status=none"
    world.sh(f"{KILL}; {garbage} || :; {START} || :")
    return lambda: world.sh(f"{KILL}; rm -f {STATE}/ledger*; {START}")


def disk_full(world: World, one: Happening) -> End | None:
    """There is no room on the disk that the ledger is on."""
    world.note(one)
    world.sh(f"dd if=/dev/zero of={STATE}/full bs=64k status=none || :")
    return lambda: world.sh(f"rm -f {STATE}/full; {START}")


def disk_read_only(world: World, one: Happening) -> End | None:
    """Nothing can be written to the disk that the ledger is on."""
    world.note(one)
    # What is open for writing keeps a file system from it; the kernel does the same to a disk with errors.
    world.sh(f"{KILL}; mount -o remount,ro {STATE}; {START} || :")
    return lambda: world.sh(f"{KILL}; mount -o remount,rw {STATE}; {START}")


def clock(direction: int) -> Does:
    """Somebody sets the controller's clock wrong, and right again."""

    def does(world: World, one: Happening) -> End | None:
        by = direction * drawn(one).choice((70, 900, 90_000))
        world.note(one)
        world.sh(f"echo {by} >/run/chaos/clock.new; mv /run/chaos/clock.new /run/chaos/clock")
        return lambda: world.sh("rm -f /run/chaos/clock")

    return does


def second_controller(world: World, one: Happening) -> End | None:
    """Another controller of the same pool, with nothing of what the first one knows."""
    world.sh(f"test ! -e {SECOND}/pid")  # of that name there is one at a time
    world.note(one)
    settings = f"sed 's,^\\[pool\\]$,&\\nstate_dir = \"{SECOND}\",' /etc/updraft/updraft.toml"
    world.sh(
        f"mkdir -p -m 700 {SECOND}; cp -a {STATE}/identity* {SECOND}/ 2>/dev/null || :; "
        f"{settings} >{SECOND}/updraft.toml; "
        f"setsid updraft --config {SECOND}/updraft.toml run >>{SECOND_LOG} 2>&1 </dev/null & "
        f"echo $! >{SECOND}/pid; sleep 2; kill -0 $!"  # it goes on, and waits
    )
    return lambda: world.sh(f"kill -9 $(cat {SECOND}/pid) || :; rm -rf {SECOND}")


DEEDS: dict[str, Does] = {
    "controller-killed": killed,
    "controller-killed-at-a-step": at_a_step("KILL"),
    "controller-stopped": stopped,
    "controller-stopped-at-a-step": at_a_step("STOP"),
    "ledger-deleted": ledger_deleted,
    "ledger-old": ledger_old,
    "ledger-damaged": ledger_damaged,
    "disk-full": disk_full,
    "disk-read-only": disk_read_only,
    "clock-forward": clock(1),
    "clock-back": clock(-1),
    "second-controller": second_controller,
}
