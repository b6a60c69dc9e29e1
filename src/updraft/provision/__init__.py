"""Heads, machine images and this machine itself, made and taken back: use cases, without a command line.

In come settings and clouds; out come machines, images and files, each step with its way back. Read `heads`
for a head in a cloud, `setup` for a head made of this machine, `images` for what machines start from.
"""
