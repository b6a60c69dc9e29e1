"""The local cloud itself, as a process in namespaces of its own: machines, network, metadata and API.

In come calls of its API; out come machines. Read `cloud` first (its state), then `machine`.
"""
