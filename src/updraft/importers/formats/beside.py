"""The files that a cloud_scheduler.conf names, where they stand beside it."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from updraft.errors import UsageError
from updraft.importers.formats.reading import Form, Source, read, values

NAMED = {
    "cloud_resource_config": Form.RESOURCES,
    "user_limit_file": Form.LIMITS,
    "target_cloud_alias_file": Form.ALIASES,
    "default_yaml": Form.USER_DATA,
}


def with_those_beside(paths: Sequence[Path], sources: Sequence[Source]) -> list[Source]:
    """The sources, and those that a cloud_scheduler.conf among them names, if they are in its directory.

    A file of the same kind that was named on the command line comes before one that is found so.
    """
    found = list(sources)
    for path, source in zip(paths, sources, strict=True):
        if source.form is Form.SCHEDULER:
            found += _beside(
                path, source, {one.form for one in sources}, {"", *(one.name for one in sources)}
            )
    return found


def _beside(path: Path, source: Source, there: set[Form], already: set[str]) -> list[Source]:
    try:
        named = {value.key: value.text for value in values(source) if value.key in NAMED and value.text}
    except UsageError:
        return []  # said with all other faults of the file
    wanted = {
        PurePath(text.strip("\"'")).name: NAMED[key]
        for key, text in named.items()
        if NAMED[key] not in there or NAMED[key] is Form.USER_DATA
    }
    nearby = [path.parent / name for name in wanted if name not in already and (path.parent / name).is_file()]
    return [one for one in map(read, nearby) if one.form is wanted[one.name]]
