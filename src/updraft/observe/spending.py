"""What the records say was spent: asked of the ledger every half minute, and whenever it wasn't known."""

from collections.abc import Callable

from updraft.core.model import BudgetScope, Known, Reason, Source, Spent, Unknown
from updraft.core.settings import DAY, Policy
from updraft.errors import LedgerError

EVERY = 30.0
"""Seconds for which an answer serves, if the records were fresh: what runs meanwhile is reckoned."""
ReadSpent = Callable[[float, bool], Spent | None]
"""What was spent in the day and month of a time, by users too or not; None where nothing is recorded yet."""
_NONE_YET = Reason(
    "spending-unknown", "what was spent is known once the daemon's first look is in the records"
)
_PEOPLE = (BudgetScope.USER, BudgetScope.GROUP)


class SpendingAsker:
    """Asks what was spent where a policy has budgets of money, and remembers the answer for a while."""

    def __init__(self, read: ReadSpent | None) -> None:
        self._read = read
        self._last: Known[Spent] | None = None
        self._for: tuple[object, ...] = ()

    def ask(self, policy: Policy, now: float) -> Source[Spent] | None:
        """What was spent, as far as it is known; None where no budget asks for it."""
        if not policy.spending or self._read is None:
            return None
        people = any(one.scope in _PEOPLE for one in policy.spending)
        due = (people, int(now // DAY))
        if self._last is not None and self._for == due and 0 <= now - self._last.at < EVERY:
            return self._last
        self._last, self._for = None, due
        try:
            found = self._read(now, people)
        except LedgerError as error:
            return Unknown(Reason("spending-unknown", f"what was spent can't be read: {error}"), now)
        if found is None:
            return Unknown(_NONE_YET, now)
        answer = Known(found, now)
        if 0 <= now - found.at < EVERY:  # older records are soon followed by others
            self._last = answer
        return answer
