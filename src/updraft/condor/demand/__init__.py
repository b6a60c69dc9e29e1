"""The demand at one schedd: its queue, read so that a job whose ad can't be read costs itself.

In come a schedd and a deadline; out come job groups as the core has them. Read `schedd` first, then `queue`
(how it is asked) and `groups` (what is made of the rows).
"""
