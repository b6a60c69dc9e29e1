"""Numbers, durations and moments as a person says them, and text from outside made safe to show."""

from datetime import datetime


def ago(seconds: float) -> str:
    """A duration as a person says it, in at most two units: 3s, 12m, 2h10m, 5d."""
    left = max(0, round(seconds))
    if left < 60:
        return f"{left}s"
    minutes, hours, days = left // 60, left // 3600, left // 86400
    if minutes < 60:
        return f"{minutes}m"
    if hours < 24:
        return f"{hours}h{minutes % 60:02d}m" if minutes % 60 else f"{hours}h"
    return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"


def clock(at: float) -> str:
    """A moment as the local time of day, with the date where it isn't today's."""
    moment = datetime.fromtimestamp(at).astimezone()
    today = datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if moment.date() == today else "%Y-%m-%d %H:%M:%S")


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 job", "3 jobs"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def megabytes(memory: int) -> str:
    """Memory in MiB as a person says it: 2048 is "2 GiB"."""
    return f"{memory / 1024:g} GiB" if memory >= 1024 and memory % 512 == 0 else f"{memory} MiB"


def printable(text: str, spared: str = "\n\t") -> str:
    """The text with whatever isn't a letter, a sign or a space in the form of Python's escapes: `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in spared else ascii(letter)[1:-1] for letter in text
    )
