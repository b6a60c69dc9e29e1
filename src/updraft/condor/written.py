"""Conditions on what an ad says as it is written: for those that a daemon tests on ads of strangers.

An attribute may be any expression, and a daemon that tests a condition evaluates what the condition names. A
ladder of attributes (`A0 = A1 + A1`, `A1 = A2 + A2`, …) takes half a second at best, and where the schedd
looks for references, to group jobs, it never ends: what was forked for the question keeps a processor busy
for good, and with a handful of these the schedd answers nobody any more. `unparse` gives an attribute's
text, and evaluates nothing. (It sees the ads of a schedd's jobs; where a collector tests conditions, it sees
the question in place of the ad.)
"""

from collections.abc import Iterable

_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NUMBER = r"-?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?"
# Numbers and texts: what nearly all jobs say, told at once.
_PLAINEST = rf"[-0-9. ]*+(?:{_TEXT}[-0-9. ]*+)*+"
# What an expression may hold that refers to nothing which its owner has made up: numbers, texts, operators,
# functions, what it asks of the machine, and some names. Each part is taken whole, and never tried again.
_PARTS = (
    r"[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?",
    r"""[^0-9A-Za-z_"']+""",
    _TEXT,
    r"TARGET\.[A-Za-z0-9_]+(?!\.)",
    r"[A-Za-z_]+(?=\()",
)
_KEYWORDS = ("true", "false", "undefined", "error", "is", "isnt")


def quoted(text: str) -> str:
    """The text as a ClassAd's literal."""
    import classad2

    return str(classad2.quote(text))


def said(name: str) -> str:
    """The condition that the ad says something under this name."""
    return f'unparse({name}) != ""'


def says(name: str, *literals: str) -> str:
    """The condition that it says one of these literals; letters' cases are no difference."""
    which = " || ".join(f"unparse({name}) == {quoted(one)}" for one in literals)
    return f"({which})" if literals[1:] else which


def says_text(name: str) -> str:
    """The condition that it says a text, and no expression."""
    return _like(_TEXT, f"unparse({name})")


def says_number(name: str) -> str:
    """The condition that it says a number, and no expression."""
    return _like(_NUMBER, f"unparse({name})")


def says_plainly(names: Iterable[str], known: Iterable[str]) -> str:
    """The condition that what it says under all these names refers to `known` attributes of its own at most.

    False or an error where it doesn't: compare with `is true`.
    """
    texts = ', " ", '.join(f"unparse({name})" for name in names)
    if not texts:
        return "true"
    own = "|".join(sorted({*known, *_KEYWORDS}))
    parts = "|".join((*_PARTS, rf"(?:MY\.)?(?:{own})(?![A-Za-z0-9_.])"))
    together = f'strcat({texts}, "")'
    return f"({_like(_PLAINEST, together)} || {_like(f'(?:(?>{parts}))*+', together)})"


def _like(pattern: str, text: str) -> str:
    return f'regexp({quoted(f"^{pattern}$")}, {text}, "is")'
