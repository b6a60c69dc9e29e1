"""The forms of what `tokens` says."""

from collections.abc import Mapping

from updraft.cli.forms import VERSION, Schema, form, listing, value

_NAMES = value("string", "A launch.")
_KEYS = listing(
    form(
        "A key that signs workers' tokens.",
        name=value("string", "Its name, which tokens name too."),
        signs=value("boolean", "Whether it signs those of new launches."),
    ),
    "The keys on this machine, the oldest first; empty where they can't be seen.",
)
_TOKEN = form(
    "A token that may be in use; never the token itself.",
    launch=value("string", "Its launch; `by-hand-…` for one that `userdata worker --with-token` made."),
    **{"class": value("string", "The launch's worker class.")},
    identity=value("string", "As whom its machines authenticate."),
    id=value("string", "The token's own id (jti); empty where it isn't known."),
    key=value("string", "The name of the key that signed it; empty where it isn't known."),
    issued=value("number", "When it was made.", none=True),
    expires=value("number", "When it ends by itself; null where it isn't known.", none=True),
    machines=value("integer", "How many machines of the launch live."),
    state={"enum": ["good", "revoked", "over"], "description": "Over: it has ended by itself."},
)
TOKEN_FORMS: Mapping[str, Schema] = {
    "tokens list": form(
        "The tokens that may be in use, the oldest first.",
        version=VERSION,
        tokens=listing(_TOKEN, "One a launch."),
        keys=_KEYS,
    ),
    "tokens revoke": form(
        "What was revoked.",
        version=VERSION,
        launches=listing(_NAMES, "The launches."),
        identities=listing(value("string", "An identity."), "As whom their machines authenticate."),
        all=value("boolean", "Whether every token that was issued until now is revoked."),
        file=value("string", "The file of HTCondor's configuration that says so."),
    ),
    "tokens rotate": form(
        "What became of the keys.",
        version=VERSION,
        new=value("string", "The key that was made.", none=True),
        removed=listing(value("string", "A key."), "Those that were removed."),
        needed=value("object", "Old keys that stay, each with how many machines may have a token of it."),
        revoked=listing(_NAMES, "The launches whose tokens were revoked with it."),
        keys=_KEYS,
    ),
}
