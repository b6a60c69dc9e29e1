"""The forms of what the verbs about images print as JSON."""

from collections.abc import Mapping

from updraft.cli.forms import VERSION, Schema, form, listing, value

MACHINE_IMAGE = form(
    "A machine image.",
    cloud=value("string", "Its cloud."),
    id=value("string", "The cloud's name for it."),
    name=value("string", "Its name."),
    state=value("string", '"ready", "making" or "failed".'),
    architecture=value("string", "As the cloud says it."),
    created=value("number", "When it was made.", none=True),
    size=value("integer", "Bytes of its file or its volumes.", none=True),
    form=value("string", 'The form of its file ("qcow2", "raw", "tar"), empty where it has none.'),
    checksum=value("string", '"ALGORITHM:HEX" of its file, empty where the cloud tells none.'),
    pool=value("string", "The pool whose updraft made it, empty where somebody else did."),
    ours=value("boolean", "This pool's updraft made it."),
    shared=listing({"type": "string"}, "Who else may use it, as far as the cloud told; `show` asks."),
    **{"from": value("string", "What it was made from, where updraft made it.")},
)
IMAGE_FORMS: Mapping[str, Schema] = {
    "image list": form(
        "Machine images.",
        version=VERSION,
        images=listing(MACHINE_IMAGE, "By cloud, as it lists them."),
        errors=listing(
            form("A cloud left out.", cloud=value("string", "Which."), text=value("string", "What it said.")),
            "Clouds that didn't answer.",
        ),
    ),
    "image show": form("One machine image.", version=VERSION, image=MACHINE_IMAGE),
}
