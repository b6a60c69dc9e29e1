"""Which keys a table of the file may have: for the suggestion in an error, and for the reference."""

from typing import Any, get_args

from pydantic import BaseModel

from updraft.config.lines import KeyPath
from updraft.config.model import CloudLimits, CloudTable, Demand, Pool, PoolLimits, Timings, UserLimits
from updraft.config.tables.annexes import Annexes
from updraft.config.tables.monitoring import Monitoring
from updraft.config.tables.network import Network
from updraft.config.tables.part import Part
from updraft.config.tables.spare import Spare
from updraft.config.tables.spending import GroupLimits
from updraft.config.tables.usage import Energy, Usage
from updraft.config.tables.web import Web
from updraft.config.tables.worker import WorkerClass

# The tables of the file in the order of the reference; NAME stands for what the site chooses.
TABLES: tuple[tuple[str, type[Part]], ...] = (
    ("pool", Pool),
    ("clouds.NAME", CloudTable),
    ("clouds.NAME.limits", CloudLimits),
    ("classes.NAME", WorkerClass),
    ("[classes.NAME.spare]", Spare),
    ("limits", PoolLimits),
    ("users.NAME", UserLimits),
    ("groups.NAME", GroupLimits),
    ("demand", Demand),
    ("annexes", Annexes),
    ("usage", Usage),
    ("usage.clouds.NAME", Energy),
    ("monitoring", Monitoring),
    ("web", Web),
    ("timings", Timings),
    ("network", Network),
)


def known_keys(model: type[BaseModel], table: KeyPath) -> list[str]:
    """The keys that a table under `model` may have, in the order in which the model has them.

    A part of the path that no model has is a name that the site chose, or a place in a list.
    """
    for part in table:
        if isinstance(part, str) and part in model.model_fields:
            model = _inner(model.model_fields[part].annotation) or model
    return list(model.model_fields)


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as Mapping[str, Model] or Model | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _inner(part))), None)
