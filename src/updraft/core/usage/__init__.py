"""What was used: a look in, what it adds to the records out.

`sightings` reads a look: which machines live, and who has claims on them. `booking` compares it with what was
known and says what that adds to the records of each machine and day. Start with `booking`.
"""
