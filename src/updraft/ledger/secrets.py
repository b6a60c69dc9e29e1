"""What is taken out of a text before it is kept or logged: consoles, errors, notes.

Images that we don't write print what they like on their consoles, and clouds quote in their errors what they
were sent. What has the form of a key is taken out wherever it stands, and what stands where a password is
said ("password: …", "OS_PASSWORD=…", cloud-init's list of random ones). Best effort: a password that looks
like a word in the middle of a sentence isn't found. Every pattern is linear in the text: it may be hostile.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

REMOVED = "(secret removed)"

# Where a part of a key that begins before the text, or ends behind it, is all that is there.
_PEM = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
    r"|\A[A-Za-z0-9+/=\s]{0,16384}-----END [A-Z ]{0,40}PRIVATE KEY-----",
    re.DOTALL,
)
_DOTTED = re.compile(r"[\w.-]+")  # what a JSON Web Token, as HTCondor's are, is in
_LEAST_PARTS = (8, 5, 5)

# Keys of AWS by their ids' first letters, tokens of Keystone and of code hosts, hashes of passwords.
_FORMS = re.compile(
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|(?<![\w-])gAAAAA[\w-]{40,}={0,2}"
    r"|(?<!\w)(?:gh[opsu]_\w{20,}|glpat-[\w-]{16,})"
    r"|\$(?:[1567y]|gy|2[abxy])\$[\w./$,=+-]{20,}"
)
# The secret key of AWS says nothing of itself: 40 letters of base64, which change their kind all the time.
_FORTY = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_KINDS = (str.isupper, str.islower, str.isdigit)
_CHANGES = 13
_LONG = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}")

_HEADER = re.compile(
    r"((?i:authorization:[ \t]{0,3}(?:(?:basic|bearer)[ \t]{1,3})?+"
    r"|x-(?:auth|subject|service|aws-ec2-metadata|amz-security)-token:[ \t]{0,3}))(?!\(secret)[^\s\"']+"
)
_ADDRESS = re.compile(r"(?<=://)([^\s/@:\"']{0,64}:)[^\s/@\"']{1,256}(?=@)")

_LABEL = (
    r"(?:pass(?:word|wd|phrase|code)|admin_?pass|root_?pw|(?-i:PASS)(?==)"
    r"|secret(?:[ _-]?access)?(?:[ _-]?key)?|(?:session|security|access|auth)[ _-]?token|api[ _-]?key)"
)
_NAMED = re.compile(rf"(?i){_LABEL}\d{{0,3}}")
_SAID = re.compile(
    rf"(?i)({_LABEL}\d{{0,3}}(?![A-Za-z0-9_-])\\?[\"'`]?"
    r"(?:[ \t](?:for|of)[ \t](?:the[ \t])?(?:(?:user|account)[ \t])?[\"'`]?[\w.@-]{1,64}[\"'`]?)?)"
    r"([ \t]{0,3}(?:=>|:=|[:=])[ \t]{0,3}"
    r"|[ \t](?:(?:is|was)(?:[ \t]set[ \t]to)?|(?:set[ \t])?to)[ \t]{0,3}:?[ \t]{0,3})"
    r"(\\?\"[^\"\n]{1,512}\"|'[^'\n]{1,512}'|`[^`\n]{1,512}`|[^\s]{1,512})"
)
_SAYS_NOTHING = re.compile(
    r"(?i)true|false|yes|no|none|null|nil|n/?a|empty|unset|set|not|required|optional|disabled|enabled|locked|"
    r"expired|changed|unchanged|missing|invalid|incorrect|wrong|rejected|accepted|failed|denied|ok|unknown|"
    r"never|\d{0,3}|\*+|x+|\.+|\W{1,3}|\$\{?\w+\}?|\$\(.*|%\w+%|<.*>|(?-i:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)|"
    r"\(secret|\(secret removed\)"
)
_WORD = re.compile(r"[A-Za-z][a-z'’-]*[.,;:!?)]*|\W+")
_MORE = re.compile(r"[ \t]+\S")

# What cloud-init prints of passwords that it has made up (`cc_set_passwords`): a line each, after this one.
_RANDOM = re.compile(r"Set the following 'random' passwords")
_ACCOUNT = re.compile(
    r"((?:\[[^\]\n]{0,32}\][ \t]{0,3})?(?:[\w.-]{1,64}\[\d{1,9}\]:[ \t]?)?)"
    r"(?:([\w.-]{1,64}:)(\S{1,512}))?\s{0,3}"
)


def scrub(text: str) -> str:
    """The text without what looks like a secret, in letters that a file can hold. Scrubbing twice is fine."""
    text = storable(text)
    lowered = text.lower()
    for words, remove in _RULES:
        if any(word in lowered for word in words):
            text = remove(text)
    return _FORTY.sub(_without_aws_secret, text)


def scrubbed(document: Any) -> Any:
    """A document of JSON's values, each text scrubbed; one whose key names a password is removed."""
    if isinstance(document, str):
        return scrub(document)
    if isinstance(document, Mapping):
        return {scrub(str(key)): _of_key(str(key), value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [scrubbed(one) for one in document]
    return document


def suspicious(text: str) -> bool:
    """Whether a secret may be in this text of JSON. False is certain, and told fast: most texts have none."""
    lowered = text.lower()
    return any(word in lowered for word in _WORDS) or _LONG.search(text) is not None


def storable(text: str) -> str:
    """The text with what is no Unicode written as escapes: SQLite refuses it."""
    return text.encode("utf-8", "backslashreplace").decode()


# ----------------------------------------------------------------------------------------------- the rules


def _without_tokens(text: str) -> str:
    return _DOTTED.sub(_without_token, text)


def _without_token(found: re.Match[str]) -> str:
    """Of a word with dots: what begins as a token and has its three parts."""
    parts, kept = found[0].split("."), []
    while parts:
        at = parts[0].find("eyJ")
        rest = [parts[0][at:], *parts[1:3]]
        if at >= 0 and len(rest) == 3 and all(map(_is_long, rest, _LEAST_PARTS)):
            kept.append(parts[0][:at] + REMOVED)
            parts = parts[3:]
        else:
            kept.append(parts.pop(0))
    return ".".join(kept)


def _is_long(part: str, least: int) -> bool:
    return len(part) >= least


def _without_aws_secret(found: re.Match[str]) -> str:
    word = found[0]
    kinds = [next((at for at, is_kind in enumerate(_KINDS) if is_kind(letter)), None) for letter in word]
    changes = sum(one != other for one, other in pairwise(kinds))
    return REMOVED if changes >= _CHANGES and {0, 1, 2} <= set(kinds) else word


def _without_random(text: str) -> str:
    """The passwords of accounts in the lines after the one that says so, up to the first without any."""
    kept, listed = [], False
    for line in text.split("\n"):
        found = _ACCOUNT.fullmatch(line) if listed else None
        listed = found is not None or _RANDOM.search(line) is not None
        kept.append(line if found is None or not found[2] else f"{found[1]}{found[2]}{REMOVED}")
    return "\n".join(kept)


def _without_said(found: re.Match[str]) -> str:
    """The name of a password with what it is, unless that says nothing, or is how a sentence goes on."""
    label, sign, value = found.groups()
    bare = value.strip("\\\"'`").strip()
    follows = _MORE.match(found.string, found.end()) is not None
    assigned = sign.strip() in ("=", ":=", "=>")
    sentence = not assigned and _WORD.fullmatch(value) and (follows or sign.strip() != ":")
    command = value[0] == "`" and " " in value
    if sentence or command or _says_nothing(bare):
        return found[0]
    return f"{label}{sign}{REMOVED}"


def _says_nothing(value: str) -> bool:
    return _SAYS_NOTHING.fullmatch(value.rstrip(".,;:!?)]}")) is not None or value.startswith("(secret")


def _of_key(key: str, value: Any) -> Any:
    named = isinstance(value, str) and _NAMED.search(key) and not _says_nothing(value.strip())
    return REMOVED if named else scrubbed(value)


def _by(pattern: re.Pattern[str], put: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    return partial(pattern.sub, put)


# Each with the words, in small letters, without one of which there is nothing for it in a text.
_RULES: tuple[tuple[tuple[str, ...], Callable[[str], str]], ...] = (
    (("private key",), _by(_PEM, REMOVED)),
    (("eyj",), _without_tokens),
    (("akia", "asia", "abia", "acca", "gaaaaa", "gh", "glpat-", "$"), _by(_FORMS, REMOVED)),
    (("://",), _by(_ADDRESS, rf"\1{REMOVED}")),
    (("authorization:", "-token:"), _by(_HEADER, rf"\1{REMOVED}")),
    (("'random' passwords",), _without_random),
    (("pass", "rootpw", "root_pw", "secret", "token", "api"), _by(_SAID, _without_said)),
)
_WORDS = tuple(word for words, _ in _RULES for word in words)
