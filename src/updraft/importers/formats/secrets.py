"""Finding what must not be shown in the text of a script or a cloud-config: a mask stands in its place.

Best effort: what is called like a secret, or stands where a known program takes one, is found. A secret that
looks like any other word is not.
"""

import re
from collections.abc import Callable, Iterable, Iterator

MASK = "LEFT-OUT"

_QUOTED = r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'"
_WORD = rf"({_QUOTED}|[^\s\"';|&()]+)"
_NAME = r"[\w.-]*(?:key|secret|pass|_pwd|token|credential)[\w.-]*"
# Whatever is called so is a secret, unless it says nothing by itself.
_SURE = re.compile(r"(?i)key|secret|pass|_pwd")
_SAYS_NOTHING = re.compile(
    r"(?i)true|false|yes|no|none|null|~|\$\w+|\$\{\w+\}?|\$\((?!.*(echo|printf)).*|%\w+%|"
)
_PLACE = re.compile(r"(?i)(_file|_path|_dir|_directory|_url|_methods|_location|id)$")
_ORDINARY = re.compile(r"(?i)never|optional|preferred|required|[/\[{].*")
_PUBLIC = re.compile(r"[\[\"'\s]*(ssh-(rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+) ")

# `NAME = the rest of the line`, as YAML and INI have it; a shell has no blank there.
_LINE = re.compile(
    rf"(?im)^([ \t]*(?:-[ \t]+)?)([\"']?{_NAME}[\"']?)([ \t]*:[ \t]+|[ \t]+=[ \t]*)(?![\"'{{|>&*#])(\S.*)$"
)
_LIST = re.compile(rf"(?i)()({_NAME})([\"']?[ \t]*:[ \t]*\[)([^\]\n]*)")
_ASSIGNED = re.compile(
    rf"(?i)(\b|(?<=_))({_NAME})([\"']?[ \t]*[=:][ \t]*)"
    rf"({_QUOTED}|\$\([^)\n]*\)|\$\{{[^}}\n]*\}}|(?<=[=])[^\s\"';|&)}}]+|[^\s\"'{{}}\[]*[^\s\"',{{}}\[])"
)
_FORMS = (
    rf"(condor_store_cred\b[^\n]*?\s-p[ \t]+){_WORD}",
    rf"((?i:(?<![\w-])--?[\w-]*(?:password|passwd|passphrase|pass|secret|token|key)[ =]+)){_WORD}",
    r"(\w+://[^\s/@:]*:)([^\s/@]+)(?=@)",
    r"(\s(?:-u|--user)[ =]+[\"']?[\w.-]+:)([^\s\"';|&]+)",
    rf"(\b(?:sshpass\b[^\n|;&]*?\s-p[ \t]*)){_WORD}",
    rf"(\bmysql\w*\b[^\n|;&]*?\s-p)(?=[^\s]){_WORD}",
    rf"(\b(?:docker|podman|nerdctl|helm)\b[^\n|;&]*?\blogin\b[^\n|;&]*?\s-p[ \t]*){_WORD}",
    rf"(\b(?:useradd|usermod)\b[^\n|;&]*?\s-p[ \t]*){_WORD}",
    rf"(\bldap\w+\b[^\n|;&]*?\s-w[ \t]*){_WORD}",
    rf"(\bredis-cli\b[^\n|;&]*?\s-a[ \t]*){_WORD}",
    rf"((?i:\bidentified\s+by\s+)){_WORD}",
    rf"((?i:\bauthorization:\s*(?:bearer|basic)\s+)){_WORD}",
    rf"(\blogin[ \t]+\S+[ \t]+password[ \t]+){_WORD}",
    r"(\b(?:echo|printf)\s+(?:-\w+\s+)?[\"']?[\w.-]+:)([^\s\"'|]+)(?=[\"']?\s*\|[^\n|]*\bchpasswd)",
    r"(\bchpasswd\b[^\n<]*<<<\s*[\"']?[\w.-]+:)([^\s\"']+)",
    r"(\b(?:echo|printf)\s+(?:-\w+\s+)?[\"']?)([^\s\"'|]+)"
    r"(?=[\"']?\s*\|\s*(?:sudo\s+)?(?:passwd|kinit|cryptsetup|sudo)\b)",
    r"(\b)((?:AKIA|ASIA)[0-9A-Z]{16}|eyJ[\w-]+\.[\w-]+\.[\w-]*|gh[opsu]_\w{20,}|glpat-[\w-]{16,})",
)
_OTHERS = tuple(re.compile(form) for form in _FORMS)
_PEM = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)(.*?)(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_HERE = re.compile(r"\bchpasswd\b[^\n]*<<-?\s*[\"']?(\w+)")
_CHPASSWD = re.compile(r"([ \t]*)[\"']?chpasswd[\"']?[ \t]*:")
_BLOCK = re.compile(rf"(?i)([ \t]*)(?:-[ \t]+)?[\"']?({_NAME})[\"']?[ \t]*[:=][ \t]*[|>][-+0-9]*[ \t]*")
_ACCOUNT = re.compile(r"([\"'\s-]*[\w.-]+:)([^\s\"']+)([\"'\s]*)")
_IN_LINE = re.compile(r"(\blist[\"']?[ \t]*:[ \t]*[\"']?[\w.-]+:)([^\s\"'},]+)")
_USERS = re.compile(r"(?i)\s*users\s*=")
_USER = re.compile(r"([=\s,;][ \t]*[\w.-]+:[\w.-]*:)([^\s,;]+)")


def masked(text: str, known: Iterable[str] = ()) -> tuple[str, tuple[int, ...]]:
    """The text without its secrets, and the lines on which there were any.

    `known` are secrets that stood elsewhere: each is masked wherever it occurs. What looks like one by its
    name or its form is masked too; a secret without either can't be found.
    """
    clean = _PEM.sub(_pem, text)
    for secret in sorted({one for one in known if len(one) > 3}, key=len, reverse=True):
        clean = clean.replace(secret, MASK)
    clean = "\n".join(_by_lines(clean.split("\n")))
    for pattern in (_LINE, _LIST, _ASSIGNED):
        clean = pattern.sub(_assigned, clean)
    for pattern in _OTHERS:
        clean = pattern.sub(_word, clean)
    pairs = zip(text.split("\n"), clean.split("\n"), strict=True)
    return clean, tuple(number for number, (old, new) in enumerate(pairs, start=1) if old != new)


def _pem(found: re.Match[str]) -> str:
    """The same number of lines, and nothing in them."""
    inside = found[2].split("\n")
    return found[1] + "\n".join(re.sub(r"\S+", MASK, line) for line in inside) + found[3]


def _assigned(found: re.Match[str]) -> str:
    before, name, sign, given = found[1], found[2], found[3], found[4]
    value = given.strip("\"'").strip()
    if _SAYS_NOTHING.fullmatch(value) or MASK in value or _PUBLIC.match(value + " "):
        return found[0]
    if not _SURE.search(name) and (_ORDINARY.fullmatch(value) or _PLACE.search(name.strip("\"'"))):
        return found[0]
    return f"{before}{name}{sign}{_quoted(given)}"


def _word(found: re.Match[str]) -> str:
    value = found[2].strip("\"'")
    return found[0] if _SAYS_NOTHING.fullmatch(value) or value == MASK else found[1] + _quoted(found[2])


def _quoted(given: str) -> str:
    quote = given[0] if given[0] in "\"'" else ""
    return f"{quote}{MASK}{quote}"


# ------------------------------------------------------------------------ what more than one line says


def _by_lines(lines: list[str]) -> Iterator[str]:
    """Accounts of chpasswd and of CernVM, and blocks of YAML that are called like a secret."""
    inside: Callable[[str], bool] | None = None  # does the block go on with this line?
    mask: Callable[[str], str] = str
    for line in lines:
        if inside is not None and inside(line):
            yield mask(line)
            continue
        inside = None
        if here := _HERE.search(line):
            inside, mask = _until(here[1]), _account
        elif block := _BLOCK.fullmatch(line):
            inside, mask = _deeper(block[1]), _all
        elif block := _CHPASSWD.match(line):
            inside, mask = _deeper(block[1]), _account
            line = _IN_LINE.sub(_word, line)
        elif _USERS.match(line):
            line = _USER.sub(_word, line)
        yield line


def _until(end: str) -> Callable[[str], bool]:
    return lambda line: line.strip() != end


def _deeper(indent: str) -> Callable[[str], bool]:
    return lambda line: not line.strip() or len(line) - len(line.lstrip()) > len(indent)


def _account(line: str) -> str:
    found = _ACCOUNT.fullmatch(line)
    return line if found is None else found[1] + MASK + found[3]


def _all(line: str) -> str:
    return re.sub(r"\S.*", MASK, line)
