"""Proof of a pool's configuration under load: a real head here, and machines that are only told of.

`schedule`, `ads`, `conf`, `figures` and `real` are pure; `sender` and `look` run on the head; `runs` starts all.
"""
