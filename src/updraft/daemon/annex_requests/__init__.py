"""Ordinary users ask the daemon for annexes of their own: a socket, and somebody who decides behind it.

`wire` is what goes over the socket, `server` takes it, `desk` decides, `client` asks.
"""
