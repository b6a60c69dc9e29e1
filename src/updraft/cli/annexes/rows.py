"""The annexes that stand, as a table: for `annex list`, `annex status` and `status`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from updraft.cli.output import Column, table
from updraft.documents import Rows
from updraft.watching.sentences import lease, size, stands

if TYPE_CHECKING:
    from rich.console import RenderableType

COLUMNS: Sequence[
    tuple[Column, bool, Callable[[Mapping[str, Any]], str]]
] = (  # in a narrow table too, its text
    (Column("annex"), True, lambda row: str(row["name"])),
    (Column("for"), True, lambda row: "all" if row["for_all"] else str(row["owner"])),
    (Column("class"), False, lambda row: str(row["worker_class"])),
    (Column("machines", right=True), True, size),
    (Column("joined", right=True), True, lambda row: str(row["look"]["joined"] if row["look"] else 0)),
    (Column("lease ends"), True, lease),
    (Column("state", wide=True), True, stands),
)


def annex_table(rows: Rows, *, narrow: bool) -> "RenderableType":
    """Annexes for people."""
    chosen = [(column, cell) for column, always, cell in COLUMNS if always or not narrow]
    return table([column for column, _ in chosen], [[cell(row) for _, cell in chosen] for row in rows])
