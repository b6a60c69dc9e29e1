"""What was decided and what happened, newest first: a log that one can follow."""

from updraft.documents import Row, plain
from updraft.web.looking import Look

PAGE = 100
CSV = ("id", "at", "kind", "subject", "code", "text")
MOST = 2_000_000_000


def view(look: Look) -> Row:
    """The latest events, or those `before` an event; of a `kind`, of a `subject`."""
    kind, subject = look.query.text("kind"), look.query.text("subject")
    before = look.query.number("before", 0, 0, MOST)
    found = look.reader.events(
        limit=PAGE + 1, kinds=(kind,) if kind else (), subject=subject or None, before=before or None
    )
    newest = [plain(event) for event in reversed(found)]
    rows = newest[:PAGE]
    return {
        "looked_at": look.picture.status["daemon"]["looked_at"],
        "chosen": {"kind": kind, "subject": subject, "before": before},
        "older": rows[-1]["id"] if len(newest) > PAGE else None,
        "rows": rows,
    }
