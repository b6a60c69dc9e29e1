"""The form of what `leftovers` prints as JSON."""

from collections.abc import Mapping

from updraft.cli.forms import REASON, VERSION, Schema, form, listing, value

LEFTOVER_FORMS: Mapping[str, Schema] = {
    "leftovers": form(
        "What updraft has made in the clouds, and what is left over of it.",
        version=VERSION,
        leftovers=listing(
            form(
                "A thing in a cloud.",
                cloud=value("string", "Its cloud."),
                kind=value(
                    "string",
                    '"machine", "image", "snapshot", "volume", "security-group", "address", "port" or '
                    '"key-pair".',
                ),
                id=value("string", "The cloud's name for it."),
                name=value("string", "Its name, empty where it has none."),
                made=value("number", "When it was made.", none=True),
                fate={
                    "enum": ["left", "unused", "kept", "refused"],
                    "description": "left: --remove removes it; unused: only where its id is given; kept: in "
                    "use, named, or young; refused: it isn't proven to be this pool's.",
                },
                reason=REASON,
                removed=value("boolean", "This call has removed it."),
                error=value("string", "Why it couldn't be removed, else empty."),
            ),
            "By cloud, kind and id; what is kept only with --all.",
        ),
        errors=listing(
            form(
                "A question without an answer.",
                cloud=value("string", "Whom."),
                what=value("string", "What it was asked for."),
                text=value("string", "What it said."),
            ),
            "What isn't known.",
        ),
    )
}
