"""What each verb prints with `--json`, and the JSON Schema of that: docs/reference/json.md is made of it.

A key that is here stays, with its meaning, as long as `version` is 1; new keys may come beside it. How a
document gets a key is told in `updraft.documents`.
"""

from collections.abc import Mapping

from updraft.app.heads.places import HeadList
from updraft.app.images.places import Images, MachineImages, Offers, ShownImage
from updraft.app.operating.leftovers import Leftovers
from updraft.app.operating.overrides import DecidedClouds, ShownCloud
from updraft.app.operating.wishes import Wishes
from updraft.app.tokens import Revocation, Rotation, TokenList
from updraft.cli.pools.config import PoolConfig
from updraft.cli.running.replay import Replay
from updraft.cli.setup.check import CheckReport
from updraft.cli.setup.network import NetworkCheck
from updraft.cli.setup.service import ServiceStatus
from updraft.cli.setup.settings import ConfigChecked, Versions
from updraft.cli.watching.explain import ExplainedJobs
from updraft.documents import Schema, schema
from updraft.documents.annexes import AnnexChanged, AnnexCreated, AnnexList
from updraft.documents.cycle import Look
from updraft.ledger.reader import Event
from updraft.load.figures import LoadTest
from updraft.sim.reports.month_document import MonthReport
from updraft.sim.runs import Simulated
from updraft.usage.report import BillImport, UsageReport
from updraft.watching.documents import MachineList, Status
from updraft.watching.machine import ExplainedMachine

DOCUMENTS: Mapping[str, type] = {
    "plan": Look,
    "status": Status,
    "annex list": AnnexList,
    "annex status": AnnexList,
    "annex create": AnnexCreated,
    **dict.fromkeys(("annex extend", "annex stop", "annex delete"), AnnexChanged),
    "cloud list": DecidedClouds,
    "cloud show": ShownCloud,
    **dict.fromkeys(("cloud enable", "cloud disable", "cloud limit", "cloud reset"), DecidedClouds),
    "image list": MachineImages,
    "image show": ShownImage,
    "leftovers": Leftovers,
    "pool config": PoolConfig,
    "pool load": LoadTest,
    "tokens list": TokenList,
    "tokens revoke": Revocation,
    "tokens rotate": Rotation,
    "usage": UsageReport,
    "usage import": BillImport,
    "report": MonthReport,
    "network check": NetworkCheck,
    "head list": HeadList,
    "machines": MachineList,
    "events": Event,
    "replay": Replay,
    "explain JOB": ExplainedJobs,
    "explain MACHINE": ExplainedMachine,
    "simulate": Simulated,
    **dict.fromkeys(("drain", "undrain", "terminate", "adopt", "disown", "destroy"), Wishes),
    "service status": ServiceStatus,
    "check": CheckReport,
    "images": Images,
    "offers": Offers,
    "config check": ConfigChecked,
    "version": Versions,
}


def of_verb(document: type) -> Schema:
    """The schema of a document as it is printed: with the version of its form."""
    made = schema(document)
    version = {"const": 1, "description": "The version of this form."}
    properties = {"version": version, **made["properties"]}
    return {**made, "properties": properties, "required": ["version", *made["required"]]}


FORMS: Mapping[str, Schema] = {verb: of_verb(document) for verb, document in DOCUMENTS.items()}
