"""Simulated time: the daemon's own parts on simulated clouds and a simulated pool.

In come a workload, clouds and a policy; out comes what became of the jobs and what it cost. Read `controller`
first: a controller as the daemon has it. It acts in one pool (`world.pool`), on clouds of either kind:
`world.simulation` has what whole traces take (`world.fastcloud`), `engine` the driver `fake`'s with all
their faults.
"""
