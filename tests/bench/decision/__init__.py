"""Decisions about large pools in memory. Read `crowd` first: the pool that most are about."""
