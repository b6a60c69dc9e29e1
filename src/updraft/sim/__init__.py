"""Simulated time: the daemon's own parts on simulated clouds and a simulated pool.

In come a workload, clouds and a policy; out comes what became of the jobs and what it cost. Read `controller`
first: a controller as the daemon has it. It acts in one pool (`world.pool`), on clouds of the driver `fake`
(`sites`): `world.simulation` leaves out what whole traces don't need, `engine` lets go wrong what can.
"""
