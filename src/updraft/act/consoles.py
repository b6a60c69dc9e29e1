"""What a machine has printed: the one line by which its boot says why it failed."""

BOOT_FAILED = "updraft-boot: FAILED: "
LONGEST = 300  # characters of a line that come from a machine, and go into a sentence of ours


def boot_failure(console: str) -> str:
    """Why the boot failed, as the machine's own boot script said it last; nothing where it didn't.

    Control characters are taken out: what an image prints is not ours to trust.
    """
    for line in reversed(console.splitlines()):
        _, found, why = line.partition(BOOT_FAILED)
        if found:
            return "".join(letter if letter.isprintable() else " " for letter in why).strip()[:LONGEST]
    return ""
