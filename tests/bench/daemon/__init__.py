"""Whole controllers at work on a pool in memory, each in a process of its own. Read `whole` first."""
