"""What turns a machine into the one that an image is made of, and what no image may carry.

In come the layers of a worker or a head; out come the layers that install, clean and look through a disk.
Read `baking` first.
"""
