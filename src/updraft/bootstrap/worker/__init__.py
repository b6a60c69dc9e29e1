"""The user-data of a worker, and its parts.

In come the class's settings and what the head says of itself; out come layers for cloud-init. Read `userdata`
first: it puts the parts together. The programs that run on the machine are in `bootstrap/files`.
"""
