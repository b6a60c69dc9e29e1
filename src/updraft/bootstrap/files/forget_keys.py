#!/usr/bin/python3 -I
"""Empties the kernel's keyrings of who runs this: they outlive all his processes, with his Kerberos tickets.

Needs nothing but Python 3.6.
"""

import ctypes
import os
import sys

# keyctl(2) by the kernel's own numbers: libc has no name for it.
KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
CLEAR, GET_PERSISTENT = 7, 22
PROCESS, USER, USER_SESSION = -2, -4, -5


def main() -> int:
    """0 once they are empty; a persistent one isn't in every kernel."""
    number = KEYCTL.get(os.uname().machine)
    if number is None:
        return 1
    libc = ctypes.CDLL(None)
    libc.syscall.restype = ctypes.c_long

    def keyctl(*arguments: int) -> int:
        return int(libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)))

    persistent = keyctl(GET_PERSISTENT, -1, PROCESS)
    if persistent > 0:
        keyctl(CLEAR, persistent)
    return int(any(keyctl(CLEAR, keyring) < 0 for keyring in (USER, USER_SESSION)))


if __name__ == "__main__":
    sys.exit(main())
