"""A report as a Parquet file, for tools that read columns. Takes `pyarrow` (the extra `parquet`)."""

from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

from updraft.errors import UsageError

_KINDS = {"string": "string", "integer": "int64", "number": "float64"}


def write(rows: Iterable[dict[str, Any]], columns: Mapping[str, str], out: BinaryIO) -> None:
    """Write these columns (name to "string", "integer" or "number") of the rows; what isn't known is null.

    Raises UsageError where pyarrow isn't installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "Parquet takes pyarrow: install the extra `parquet` of updraft, or write --format csv"
        ) from error
    schema = pyarrow.schema([(name, getattr(pyarrow, _KINDS[kind])()) for name, kind in columns.items()])
    table = pyarrow.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows], schema)
    parquet.write_table(table, out)
