"""What was decided and what happened, newest first, from now or from a moment on: a log to follow."""

from datetime import UTC, datetime, timedelta

from updraft.documents import Row, plain
from updraft.web.looking import BadQueryError, Look

PAGE = 100
CSV = ("id", "at", "kind", "subject", "code", "text")
MOST = 2_000_000_000
FORMS = (
    *(("%H:%M", 60.0), ("%H:%M:%S", 1.0), ("%Y-%m-%d", 86400.0)),
    *(("%Y-%m-%d %H:%M", 60.0), ("%Y-%m-%d %H:%M:%S", 1.0)),
)
"""How a moment may be written, and how long each is, in seconds."""


def view(look: Look) -> Row:
    """The latest events, those up to a moment (`at`), or `before` an event; of a `kind`, of a `subject`."""
    kind, subject = look.query.text("kind"), look.query.text("subject")
    before = look.query.number("before", 0, 0, MOST)
    at = look.query.text("at")
    found = look.reader.events(
        limit=PAGE + 1,
        kinds=(kind,) if kind else (),
        subject=subject or None,
        before=before or None,
        until=moment(at, look) if at else None,
    )
    newest = [plain(event) for event in reversed(found)]
    rows = newest[:PAGE]
    return {
        "looked_at": look.picture.status["daemon"]["looked_at"],
        "chosen": {"kind": kind, "subject": subject, "at": at, "before": before},
        "older": rows[-1]["id"] if len(newest) > PAGE else None,
        "rows": rows,
    }


def moment(text: str, look: Look) -> float:
    """The end of the minute, second or day that a text names, in UTC.

    "14:05" is today's, or yesterday's where that is to come. Raises BadQueryError for what is no moment.
    """
    for form, length in FORMS:
        try:
            found = datetime.strptime(text.replace("T", " "), form).replace(tzinfo=UTC)
        except ValueError:
            continue
        if form.startswith("%H"):
            found = datetime.combine(look.today, found.time(), UTC)
            if found.timestamp() > look.now:
                found -= timedelta(days=1)
        return found.timestamp() + length
    raise BadQueryError("at is a time of UTC, as in 14:05 or 2026-11-25 14:05")
