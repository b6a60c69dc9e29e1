"""What waits, and what room there is for it.

In come the job groups of a snapshot; out come those that count, the bins that are there (`room`), and which
groups they hold (`filling`). Read `room` first.
"""
