"""What a slot says of itself that can run containers: believed in until one was seen."""

from collections.abc import Iterable, Mapping

_SAYS: Mapping[str, Mapping[str, str]] = {
    "docker": {"HasDocker": "true", "HasContainer": "true", "HasDockerURL": "true"},
    "apptainer": {
        "HasSingularity": "true",
        "HasContainer": "true",
        "HasDockerURL": "true",
        "HasSIF": "true",
        "HasSandboxImage": "true",
    },
}


def container_attributes(universes: Iterable[str]) -> Mapping[str, str]:
    """The attributes (name to ClassAd expression) of a machine that is ready for these universes.

    A job of such a universe requires them: without a machine that is believed to have them, none would ever
    be launched for it. A real machine finds them out for itself.
    """
    return {name: value for universe in universes for name, value in _SAYS[universe].items()}
