"""The pool in a browser: a process of its own, which reads the ledger and asks nobody. It changes nothing.

A request comes in, a page, JSON or CSV goes out. Who may look is settled in `visitors`; what the ledger says
is read in one thread (`pictures`), or was read a moment ago by another one (`ahead`), and made into documents
(`views`, one for each address), which templates, JSON and CSV show alike (`drawing`). `server` holds the
sockets, and ends connections that take too long. Start with `site`.
"""
