"""Conditions on what an ad says as it is written: for those that a daemon tests on ads of strangers.

An attribute may be any expression, and a daemon that tests a condition evaluates what the condition names. A
ladder of attributes (`A0 = A1 + A1`, `A1 = A2 + A2`, …) takes half a second at best, and where the schedd
looks for references, to group jobs, it never ends: what was forked for the question keeps a processor busy
for good, and with a handful of these the schedd answers nobody any more. `unparse` gives an attribute's
text, and evaluates nothing. (It sees the ads of a schedd's jobs, and those of a collector's masters; of other
ads at a collector it may see the question instead.)
"""

from collections.abc import Iterable, Sequence

# No pattern has a backslash: conditions are read by HTCondor's old rules, under which it stands for itself.
_BACKSLASH = "(?![][^])[[-^]"  # of `[`, `\`, `]` and `^` none but this
_OTHERS = "[]-_ -!#-[[:^ascii:][:cntrl:]a-~]"  # all but the quote, the backslash and the backtick
_TEXT = f'"(?>[`]|{_OTHERS}++|{_BACKSLASH}.)*+"'
_TEXT_WITHIN = f'"(?>{_OTHERS}++|{_BACKSLASH}.)*+"'
_NUMBER = "-?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?"
# Of what an expression is made that refers to nothing that its owner has made up: numbers, texts, operators,
# functions, and what it asks of the machine. Each part is taken whole, and never tried again.
_PARTS = (
    "[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?",
    """[^0-9A-Za-z_"'`]+""",
    "TARGET[.][A-Za-z0-9_]+(?![.])",
    "[A-Za-z_]+(?=[(])",
)
# A daemon makes a pattern anew each time, which takes it longer than to use it: so a short one comes first.
# It knows short texts, and leaves in what is no leaf; what refers to others is no longer than this together.
_SHORT = '[-0-9. ]|"[]-_ -!#-[a-~]*+"'
_SHORT_MADE = '[-0-9. `+*/(){},]|"[]-_ -!#-[a-~]*+"|max(?=[(])'
_SHORTEST = 999
# The same at more cost, for nearly all other jobs: numbers and texts, and what HTCondor itself writes.
_PLAINEST = f"[-0-9. ]*+(?:(?:{_TEXT}|(?<=[0-9])E[-+]|(?:true|false)(?![A-Za-z0-9_.]))[-0-9. ]*+)*+"
_KEYWORDS = ("true", "false", "undefined", "error", "is", "isnt")
# What HTCondor itself refers to, by what it writes where a job's owner says nothing. Nearly all jobs say
# nothing else but numbers and texts, and are told by a pattern that knows no more names than these.
_USUAL = frozenset(
    {"diskusage", "imagesize", "memoryusage", "requestcpus", "residentsetsize", "transferinputsizemb"}
)
# What refers to others is no longer than this: of two such levels the schedd looks through the product.
_LONGEST = (500, 20_000)
_BETWEEN = "`"  # the levels; no expression has it but in texts, and later levels not even there


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


def says_plainly(*levels: Iterable[str]) -> str:
    """The condition that what it says under the names of each level refers to names of earlier ones at most.

    There are up to three levels; the first refers to nothing. False or an error where it isn't so: compare
    with `is true`.
    """
    named = [list(level) for level in levels]
    if not any(named):
        return "true"
    texts = f', "{_BETWEEN}", '.join(', " ", '.join(['""', *map(_text_of, level)]) for level in named)
    known: list[str] = []
    plainest, plain = [], []
    for longest, level in zip((None, *_LONGEST), named, strict=False):
        short = f"(?=[^{_BETWEEN}]{{0,{longest}}}(?:{_BETWEEN}|$))" if longest else ""
        plainest.append(short + _usual([name for name in known if name in _USUAL]))
        plain.append(short + _words(known))
        known += [name.lower() for name in level]
    together = f"strcat({texts})"
    patterns = (_short(named), _BETWEEN.join(plainest), _BETWEEN.join(plain))
    return f"({' || '.join(_like(pattern, together) for pattern in patterns)})"


def _short(levels: Sequence[Sequence[str]]) -> str:
    """The pattern of what nearly all jobs say."""
    end = "(?![a-z0-9_.])"
    first = f"(?:{_SHORT}|(?:true|false){end})*+"
    if not levels[1:]:
        return first
    leaves = sorted({name.lower() for name in levels[0]} & _USUAL)
    words = "|".join(("true", "false", *leaves))
    return f"{first}{_BETWEEN}(?=.{{0,{_SHORTEST}}}$)(?:{_SHORT_MADE}|(?:{words}){end})*+"


def _text_of(name: str) -> str:
    return f"unparse({name})"


def _words(known: Sequence[str]) -> str:
    """The pattern of what refers to nothing but these."""
    own = "|".join(sorted({*known, *_KEYWORDS}))
    text = _TEXT_WITHIN if known else _TEXT
    parts = "|".join((*_PARTS, text, f"(?:MY[.])?(?:{own})(?![A-Za-z0-9_.])"))
    return f"(?>{parts})*+"


def _usual(known: Sequence[str]) -> str:
    """The pattern of what is usual, where it may refer to these."""
    if not known:
        return _PLAINEST
    words = f"(?:{'|'.join((*known, 'isnt', 'undefined'))})(?![A-Za-z0-9_.])|(?:ifthenelse|max)(?=[(])"
    return f"(?>[-0-9.[:space:]+*/(){{}},]++|(?<=[0-9])E[-+]|{words}|{_TEXT_WITHIN})*+"


def _like(pattern: str, text: str) -> str:
    return f'regexp({quoted(f"^{pattern}$")}, {text}, "is")'
