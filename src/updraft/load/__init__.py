"""Proof of a pool's configuration under load: a real head here, and machines that are only told of.

`schedule`, `ads`, `conf`, `figures` and `words` are pure. `sender` and `look` run on the head. `head` and
`real` bring up what is tested, `runs` goes through a whole test.
"""
