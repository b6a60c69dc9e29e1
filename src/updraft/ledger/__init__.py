"""The durable record of intents, machines and events: one SQLite file, one writer, any number of readers.

The ledger can be deleted: the next start adopts what the clouds' tags say. No row holds a secret.
"""

from updraft.ledger.reader import Event, Reader, Request, RequestKind
from updraft.ledger.retention import Retention
from updraft.ledger.store import Ledger

__all__ = ["Event", "Ledger", "Reader", "Request", "RequestKind", "Retention"]
