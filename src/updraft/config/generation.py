"""The generation of a worker class: a short hash of everything that its machines are launched with."""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from updraft.core.slots import terms

if TYPE_CHECKING:
    from updraft.config.model import Pool
    from updraft.config.tables.worker import Layer, WorkerClass

LENGTH = 12


def generation(pool: "Pool", worker: "WorkerClass", images: Mapping[str, str]) -> str:
    """Twelve hex digits that change when, and only when, a new machine would come up differently.

    How many there are and how they come and go (min, max, spare, limits, idle_limit, wait_target,
    boot_deadline, flavors, clouds, markets) is not in it: a change of those replaces nothing.
    """
    launched_with = {
        "collector": pool.collector,
        "trust_domain": pool.trust_domain,
        "uid_domain": pool.uid_domain,
        "job_lease": pool.job_lease,
        "image": dict(sorted(images.items())),
        "layers": [_layer(layer) for layer in worker.layers],
        "attributes": dict(sorted(worker.attributes.items())),
        "slots": worker.slots,
        "lifetime": worker.lifetime,
        "drain_deadline": worker.drain_deadline,  # a machine's token lives as long as both together
        "head_gone_after": worker.head_gone_after,
        "condor": [worker.condor, worker.condor_version, worker.condor_repository, *worker.condor_keys],
        "universes": worker.universes,
        "contextualisation": worker.contextualisation,
        "terms": terms.VERSION,
    }
    if worker.reach != "direct":
        launched_with["reach"] = [worker.reach, worker.ccb, worker.forwarding_host]
    if worker.cvmfs:  # a class without counts as it did before there was any
        launched_with["cvmfs"] = [
            [[one.name, one.server, one.key_text] for one in worker.cvmfs],
            *(worker.cvmfs_proxy, worker.cvmfs_client, worker.cvmfs_source, worker.cvmfs_pins),
        ]
    if worker.offered_layers:
        launched_with["offered_layers"] = {
            name: _layer(layer) for name, layer in sorted(worker.offered_layers.items())
        }
    if worker.owner_only:
        launched_with["owner_only"] = True
    if worker.resources:
        launched_with["resources"] = dict(sorted(worker.resources.items()))
    text = json.dumps(launched_with, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def _layer(layer: "Layer") -> object:
    """A layer without variables counts as its text alone: it did so before there were any."""
    return [layer.text, dict(sorted(layer.variables.items()))] if layer.variables else layer.text
