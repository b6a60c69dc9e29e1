"""The record of what really was in the pool, written as the daemon goes on, for `updraft report`.

Cycles and schedds' words come in, rows of the record go out. Read `keeper`.
"""
