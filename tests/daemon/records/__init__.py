"""The record of what really was, as a daemon keeps it."""
