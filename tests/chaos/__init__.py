"""A pool that lives through a cloud, a pool and a host that misbehave: `make chaos`.

A real HTCondor pool on the cloud on one machine. What is to happen, and when, is drawn from a seed before
anything begins (`script`); jobs and faults are then carried out as written (`cloudside`, `poolside`,
`hostside`, `jobs`), to machines that are chosen among those that are there. When all faults are over and the
queue is empty, the run is judged from outside: by the cloud's own log and the jobs' event log, never by
updraft's ledger (`evidence`, `judging`). A run leaves one folder with all of it on one time line
(`running`); `shrinking` leaves faults out of a run that failed until it no longer fails.

Read `script` first, then `judging`.
"""
