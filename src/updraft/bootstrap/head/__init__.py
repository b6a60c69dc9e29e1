"""The user-data of a head: the pool's central manager and submit node, with the controller on it.

In come a head's roles, its size and its users; out come layers for cloud-init, and the same files for a
machine that is there already (`provision.setup`). Read `userdata` first.
"""
