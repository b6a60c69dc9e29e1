"""The forms of what the verbs about a pool's size print as JSON."""

from collections.abc import Mapping

from updraft.cli.forms import VERSION, Schema, form, listing, value

_SETTING = form(
    "A setting of HTCondor's.",
    name=value("string", "Its name."),
    value=value("string", "Its value."),
    reason=value("string", "Why it is so."),
    source=value("string", "Whose advice it is."),
    since=value("string", "The oldest release known to have it."),
)
_LEAST = form(
    "A limit of the system, or a need; more is as good.",
    name=value("string", "Its name."),
    at_least=value("integer", "How much."),
    unit=value("string", "Of what."),
    reason=value("string", "Why so much."),
    source=value("string", "Whose advice it is."),
)
POOL_FORMS: Mapping[str, Schema] = {
    "pool config": form(
        "The configuration for a pool of a size.",
        version=VERSION,
        role=value("string", '"head", "submit" or "worker".'),
        htcondor=value("string", "The release whose settings they are."),
        machines=value("integer", "Machines of the pool at most."),
        running_jobs=value("integer", "Jobs that run at once."),
        schedds=value("integer", "Submit nodes that share them."),
        settings=listing(_SETTING, "What is to be written, in this order."),
        unit={
            "anyOf": [_LEAST, {"type": "null"}],
            "description": "HTCondor's unit, where it must be changed.",
        },
        kernel=listing(_LEAST, "Settings of the kernel."),
        needs=listing(_LEAST, "Memory, disk and ports."),
        left_out=listing(_SETTING, "What HTCondor does by itself, with its default."),
        notes=listing(value("string", "A sentence."), "What can't be a setting."),
    )
}
