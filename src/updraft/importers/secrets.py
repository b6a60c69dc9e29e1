"""Finding what must not be shown in the text of a script or a cloud-config: a mask stands in its place."""

import re
from collections.abc import Iterable

MASK = "LEFT-OUT"

_NAME = (
    r"[\w.-]*(?:password|passwd|passphrase|secret|access_?key|private_?key|api_?key|token|credential)[\w.-]*"
)
_ASSIGNED = re.compile(
    rf"(?i)(\b|(?<=_))({_NAME})([\"']?[ \t]*[=:][ \t]*)(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',}}]+)"
)
_HARMLESS = re.compile(
    r"(?i)true|false|yes|no|none|null|never|optional|preferred|required|~|[|>][+-]?|/.*|\$[A-Za-z_({].*|%\w+%|"
)
_PLACE = re.compile(r"(?i)(_file|_path|_dir|_directory|_url|_methods|_location|id)$")
_OTHERS = (
    re.compile(r"(condor_store_cred\b[^\n]*?\s-p[ \t]+)([^\s;|&]+)"),
    re.compile(r"((?i:--?(?:password|passwd|secret|token))[ =]+)([^\s;|&]+)"),
    re.compile(r"(\w+://[^\s/@:]*:)([^\s/@]+)(?=@)"),
    re.compile(r"(\s(?:-u|--user)[ =]+[\"']?[\w.-]+:)([^\s\"';|&]+)"),
    re.compile(r"(\becho\s+(?:-\w+\s+)?[\"']?[\w.-]+:)([^\s\"'|]+)(?=[\"']?\s*\|\s*chpasswd)"),
    re.compile(r"(\becho\s+[\"']?)([^\s\"'|]+)(?=[\"']?\s*\|\s*(?:sudo\s+)?passwd)"),
    re.compile(r"(\b)((?:AKIA|ASIA)[0-9A-Z]{16}|eyJ[\w-]+\.[\w-]+\.[\w-]*)"),
)
_PEM = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)(.*?)(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)


def masked(text: str, known: Iterable[str] = ()) -> tuple[str, tuple[int, ...]]:
    """The text without its secrets, and the lines on which there were any.

    `known` are secrets that stood elsewhere: each is masked wherever it occurs. What looks like one by its
    name or its form is masked too; a secret without either can't be found.
    """
    clean = _PEM.sub(_pem, text)
    for secret in sorted({one for one in known if len(one) > 3}, key=len, reverse=True):
        clean = clean.replace(secret, MASK)
    clean = _ASSIGNED.sub(_assigned, clean)
    for pattern in _OTHERS:
        clean = pattern.sub(lambda found: found[1] + MASK, clean)
    pairs = zip(text.split("\n"), clean.split("\n"), strict=True)
    return clean, tuple(number for number, (old, new) in enumerate(pairs, start=1) if old != new)


def _pem(found: re.Match[str]) -> str:
    """The same number of lines, and nothing in them."""
    inside = found[2].split("\n")
    return found[1] + "\n".join(re.sub(r"\S+", MASK, line) for line in inside) + found[3]


def _assigned(found: re.Match[str]) -> str:
    value = found[4].strip("\"'")
    if _HARMLESS.fullmatch(value) or _PLACE.search(found[2]) or value == MASK:
        return found[0]
    quote = found[4][0] if found[4][0] in "\"'" else ""
    return f"{found[1]}{found[2]}{found[3]}{quote}{MASK}{quote}"
