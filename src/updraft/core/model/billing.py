"""How a cloud bills a machine: in which steps of time, and for how long at least.

Prices are per hour everywhere; this says how much of an hour is paid for.
"""

import math
from dataclasses import dataclass

_ROUNDING = 1e-9  # times are floats: a step that is over by less hasn't begun


@dataclass(frozen=True, slots=True)
class Billing:
    """A machine is paid for in steps of `period` seconds, each from its beginning, the first with its own.

    0 is by the second: then what is paid for is what was used. At least `least` seconds are paid for.
    """

    period: float = 0.0
    least: float = 0.0

    def paid(self, seconds: float) -> float:
        """For how many seconds is paid once a machine has been there for so many; 0 where it never was."""
        if seconds <= 0:
            return 0.0
        steps = math.ceil(seconds / self.period - _ROUNDING) * self.period if self.period else seconds
        return max(self.least, steps)

    def paid_between(self, begun: float, first: float, last: float) -> float:
        """How many seconds come to be paid for from `first` to `last`, of a machine that began at `begun`.

        A step counts when it begins: stretches that follow on one another come to what is paid for of all.
        """
        return self.paid(last - begun) - self.paid(first - begun)


BY_THE_SECOND = Billing()
