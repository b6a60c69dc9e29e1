"""User-data as data: layers that are merged and rendered for cloud-init, for workers and for a head.

In comes a `WorkerSpec` or a `HeadSpec`; out come the bytes that a machine is told at its boot. Read
`worker/userdata` first. What runs on the machines is in `files`: the scripts of a boot, and the agent of a
worker (`files/agent/watchers`: its guard, its lease, and what it does at a spot notice), told by
`worker/agent`.
"""

from updraft.bootstrap.head.userdata import HeadSpec, head_user_data, quick
from updraft.bootstrap.layers import EC2_LIMIT, Layer, compose, parse_layer
from updraft.bootstrap.worker.install import Install
from updraft.bootstrap.worker.userdata import WorkerSpec, worker_user_data

__all__ = [
    "EC2_LIMIT",
    "HeadSpec",
    "Install",
    "Layer",
    "WorkerSpec",
    "compose",
    "head_user_data",
    "parse_layer",
    "quick",
    "worker_user_data",
]
