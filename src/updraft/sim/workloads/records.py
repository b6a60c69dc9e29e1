"""Job ads in the forms in which HTCondor writes them: JSON, JSON lines, and the long form of ClassAds.

Values are read as data; an expression stays one, as text, and nothing is evaluated here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from updraft.errors import UsageError
from updraft.sim.workloads.sources import BadLines, quoted

LONGEST_AD = 1 << 22  # characters; an ad is a few thousand


@dataclass(frozen=True, slots=True)
class Expression:
    """A value that isn't a plain one: its text."""

    text: str


Value = int | float | str | bool | None | Expression
Record = Mapping[str, Value]

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,]*")
_IN_JSON = re.compile(r"/Expr\((.*)\)/", re.DOTALL)
_LINE = re.compile(r"([A-Za-z_]\w*)\s*=\s*(.*)")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_REAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_ESCAPED = re.compile(r"\\(.)")
_WORDS: Mapping[str, Value] = {"true": True, "false": False, "undefined": None, "error": None}


def json_records(name: str, lines: Iterable[tuple[int, str]], bad: BadLines) -> Iterator[Record]:
    """The ads of a JSON array, or of one JSON object after the other. Or UsageError where it breaks off.

    Where bad lines are skipped, what isn't JSON ends where the next line begins with an ad.
    """
    rest, count, array, closed, last, begun = "", 0, None, False, 0, 0
    for number, line in lines:
        last = number
        if bad.skip and line.startswith("{") and rest.strip():
            bad.met(f"line {begun}", "what begins there isn't JSON")
            rest = ""
        begun = begun if rest.strip() else number
        rest += line
        if array is None and rest.strip():
            array = rest.lstrip().startswith("[")
            rest = rest.lstrip().removeprefix("[")
        if not line.rstrip().endswith(("}", "},", "]")) and len(rest) < LONGEST_AD:
            continue  # an ad ends with its line
        found, rest = _objects(rest)
        for ad in found:
            count += 1
            yield json_record(ad)
        if rest.startswith("]"):
            closed, rest = True, rest[1:].strip()
        if (closed and rest) or len(rest) > LONGEST_AD:
            break
    if bad.skip and (rest.strip() or (array and not closed)):
        bad.met(f"line {last}", "the file is cut off there or isn't JSON")
    elif rest.strip() or (array and not closed):
        raise UsageError(
            f"{name} is cut off or isn't JSON after job {count} (line {last}); write it again with "
            "`condor_history -jsonl`, or take what can be read with --skip-bad-lines"
        )


def _objects(text: str) -> tuple[list[dict[str, object]], str]:
    """All whole objects at the beginning of a text, and what follows them."""
    found: list[dict[str, object]] = []
    at = _after_gap(text, 0)
    while text.startswith("{", at):
        try:
            ad, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(ad)
        at = _after_gap(text, at)
    return found, text[at:]


def _after_gap(text: str, at: int) -> int:
    gap = _BETWEEN.match(text, at)
    return gap.end() if gap else at


def json_record(ad: Mapping[str, object]) -> Record:
    """One ad of HTCondor's JSON form, its expressions told from texts."""
    return {key: _json_value(value) for key, value in ad.items()}


def _json_value(value: object) -> Value:
    if isinstance(value, str):
        wrapped = _IN_JSON.fullmatch(value)
        return Expression(wrapped[1]) if wrapped else value
    return value if isinstance(value, int | float | bool) else None  # lists and nested ads aren't needed


def long_records(name: str, lines: Iterable[tuple[int, str]], bad: BadLines) -> Iterator[Record]:
    """The ads of the long form: a `Name = value` on each line, an empty line or a `***` line after each.

    An ad with a bad line is left out where such are skipped: nobody knows what it would have said.
    """
    ad: dict[str, Value] = {}
    banners, number, spoiled = False, 0, False
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("***"):
            banners = banners or bool(text)
            if ad and not spoiled:
                yield ad
            ad, spoiled = {}, False
            continue
        found = _LINE.fullmatch(text)
        if found is None:
            if not spoiled:
                bad.met(f"line {number}", f"{quoted(text)} is no line of a job's ad ({_FORMS})")
            spoiled = True
            continue
        ad[found[1]] = _long_value(found[2])
    if ad and banners and bad.skip:
        bad.met(f"line {number}", "the file is cut off there: its last job has no end")
    elif ad and banners:
        raise UsageError(f"{name} is cut off in the ad before line {number}: its last job has no end")
    elif ad and not spoiled:
        yield ad


_FORMS = "a history is what `condor_history` writes with -jsonl, -json or -long"


def _long_value(text: str) -> Value:
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    if _TEXT.fullmatch(text):
        return _ESCAPED.sub(r"\1", text[1:-1])
    lower = text.lower()
    return _WORDS[lower] if lower in _WORDS else Expression(text)
