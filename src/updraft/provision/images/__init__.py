"""Machine images: made of machines, moved between files and clouds, cleaned and tested before they are used.

This room waits and says what it does; what a cloud can do with images is in `updraft.clouds.imaging`.
"""
