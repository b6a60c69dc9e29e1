"""Telling people of the few things that can't wait: what stands (`conditions`), and what is due (`watching`).

In goes a picture of the ledger; out go messages to the receivers of `notify` (`sending`, `receivers`), each
by a thread of its own with a deadline, a bounded queue and a limited rate. What is told has been written by
others, too: it is made printable, and no receiver's address or password is ever logged.
"""
