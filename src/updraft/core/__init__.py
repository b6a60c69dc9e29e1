"""The decisions: values in, values out. No I/O, no clock, no randomness.

`prepare` makes a snapshot of what was observed of pool, clouds and ledger, with what is on sale. `plan` takes
that snapshot and gives what to do about it. Read `plan` first, then `placing`, then the folder of what you
look for:

- `model`: what goes in and out; `settings`: what a site has decided; `reasons`: sentences and remedies
- `matching`: would this job run on that slot? `slots`: what would a slot look like?
- `machines`: where each machine is in its life, and every way in which it ends
- `demand`: what waits, and the room that is there; `sharing`: who gets it; `limits`: what may be bought
- `buying`: which machines, for what found no room; `annexes`: machines asked for by hand
"""
