"""Machine images by the settings: what clouds have and sell, and worker images built or made of a machine.

In come settings and what is asked for; out come images, and rows that say what there is. Read `making` first.
"""
