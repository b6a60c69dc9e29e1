"""What is told of annexes: by the verbs from the ledger, and by the daemon to those who can't read it."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from updraft.core.model import Annex, AnnexOutlook
from updraft.documents import IN_PLACE, As, Document, Row, Rows, plain
from updraft.documents.cycle import DaemonState

Stands = AnnexOutlook | Mapping[str, Any] | None


class AnnexMachine(Document):
    """A machine of an annex."""

    id: Annotated[str, "The cloud's own name of it."]
    cloud: Annotated[str, "Its cloud."]
    flavor: Annotated[str, "Its flavor."]
    text: Annotated[str, "Where it is in its life, and why, for people."]
    phase: Annotated[str, "Where it is in its life."]


class AnnexRow(Document):
    """An annex."""

    asked: Annex = field(metadata=IN_PLACE)
    layer: Annotated[bool, "Whether it has user-data of its own."]
    look: Annotated[Stands, As(AnnexOutlook | None), "As of the last look; null before one."]
    instances: Annotated[Sequence[AnnexMachine], "Its machines."]


def annex_row(annex: Annex, look: Stands, machines: Sequence[AnnexMachine] = ()) -> Row:
    """An annex as JSON values; of the user-data only whether there is some."""
    row: Row = plain(AnnexRow(annex, bool(annex.layer), look, machines))
    return row


class AnnexList(Document):
    """Annexes."""

    annexes: Annotated[Rows, As(tuple[AnnexRow, ...]), "By name."]


class AnsweringDaemon(Document):
    """The daemon, where it has answered itself."""

    alive: Annotated[bool, "It has."] = True
    acting: Annotated[bool, "It acts."] = True


class AnnexChanged(Document):
    """An annex, as it was written down."""

    daemon: Annotated[DaemonState | AnsweringDaemon, "The daemon, as in `status`."]
    annex: Annotated[Row, As(AnnexRow)]


class AnnexPurchase(Document):
    """Machines that would be launched."""

    offer: Annotated[str, "class@cloud/zone/flavor/market, and the variant."]
    count: Annotated[int, "How many."]
    price: Annotated[float | None, "Of each, per hour."]
    cores: Annotated[int, "Of all of them."]


class WouldBuy(Document):
    """What an annex would buy."""

    launches: Annotated[Sequence[AnnexPurchase], "For a dry run: what would be launched, best first."]
    outlook: Annotated[AnnexOutlook | None, "For a dry run: how it would stand."]


class AnnexCreated(Document):
    """An annex, as it was written down, or what it would buy now (--dry-run)."""

    daemon: Annotated[DaemonState | AnsweringDaemon | None, "The daemon, as in `status`; null for a dry run."]
    annex: Annotated[Row, As(AnnexRow)]
    bought: WouldBuy = field(metadata=IN_PLACE)
