"""The forms of what `network check` and `head list` print as JSON."""

from collections.abc import Mapping

from updraft.cli.forms import VERSION, Schema, form, listing, value

_RULE = form(
    "A rule of a security group.",
    direction=value("string", '"in" or "out".'),
    protocol=value("string", '"tcp", "udp", "icmp", "icmpv6", another\'s number, or "any".'),
    ports={
        "type": ["array", "null"],
        "items": {"type": "integer"},
        "description": "The first and the last, of ICMP type and code (-1: every code); null for all.",
    },
    source=value("string", 'Who is at the other end: a network, "group:ID" or "list:ID".'),
)
HEAD_FORMS: Mapping[str, Schema] = {
    "network check": form(
        "Security groups and what the pool needs of them.",
        version=VERSION,
        groups=listing(
            form(
                "The groups of one cloud's heads or workers.",
                cloud=value("string", "The cloud."),
                role={"enum": ["head", "worker"], "description": "Whose they are."},
                name=value("string", "The group's name or id, as it is looked for."),
                ids=listing({"type": "string"}, "Those that there are; empty for none."),
                missing=listing(_RULE, "What is needed and isn't there."),
                open=listing(_RULE, "What lets in more than is needed."),
                notes=listing(value("string", "A sentence."), "What can't be told, or isn't used."),
            ),
            "By cloud.",
        ),
        left_out=listing(
            form("A cloud without groups.", cloud=value("string", "Which."), text=value("string", "Why.")),
            "Clouds in which there is nothing to compare.",
        ),
    ),
    "head list": form(
        "The heads of the pool.",
        version=VERSION,
        heads=listing(
            form(
                "A head.",
                cloud=value("string", "Its cloud."),
                name=value("string", "What `head launch` called it."),
                id=value("string", "The instance's id."),
                state=value("string", "As the cloud says it: pending, running, stopped, error."),
                address=value("string", "Where it is reached; empty while it has none."),
                flavor=value("string", "Its flavor."),
                zone=value("string", "Its zone."),
                image=value("string", "What it booted."),
                launched=value("number", "When, in POSIX seconds."),
            ),
            "By cloud.",
        ),
    ),
}
