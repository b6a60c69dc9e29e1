#!/usr/bin/env python3
"""Pi to as many decimal places as the argument says, by Machin's formula, in whole numbers."""

import sys

GUARD = 10  # digits more, for what the divisions cut off
WIDTH = 50


def arctan_of_inverse(x: int, one: int) -> int:
    """The arcus tangent of 1/x, as a multiple of 1/one."""
    term = total = one // x
    divisor = 1
    while term:
        term = -term // (x * x)
        divisor += 2
        total += term // divisor
    return total


def pi(places: int) -> str:
    """The digits behind the point."""
    one = 10 ** (places + GUARD)
    value = 4 * (4 * arctan_of_inverse(5, one) - arctan_of_inverse(239, one))
    return str(value // 10**GUARD)[1:]


if __name__ == "__main__":
    digits = pi(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    print("3.")
    for at in range(0, len(digits), WIDTH):
        print(digits[at : at + WIDTH])
