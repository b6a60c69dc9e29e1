"""Asking for ads by their names, as cheaply for thousands of them as for a few."""

from collections.abc import Iterable


def among(attribute: str, names: Iterable[str]) -> str:
    """A constraint that holds where the attribute is one of these texts, in any case; with none, nowhere.

    A tree of comparisons: each ad takes as many of them as the number of names has binary digits. A list, or
    a chain of `||`, takes as many as there are names, and HTCondor gives up on a long chain.
    """
    import classad2

    # In the order in which a ClassAd compares texts.
    unique = sorted({name.encode().lower(): name for name in names}.items())
    quoted = [classad2.quote(name) for _, name in unique]

    def tree(low: int, high: int) -> str:
        if high - low == 1:
            return f"{attribute} == {quoted[low]}"
        middle = (low + high) // 2
        return f"({attribute} < {quoted[middle]} ? {tree(low, middle)} : {tree(middle, high)})"

    return f"({tree(0, len(quoted))})" if quoted else "false"
