"""Heads in a cloud: the security groups of a pool, and the machines that are its heads.

Both are for people who call, never for the controller: it touches neither.
"""
