"""What the ledger says, as documents and in sentences: what the verbs that look on print, and the page shows.

The ledger comes in; values of JSON, and words about them, go out. Nobody is asked, and nothing is drawn.
Start with `documents`.
"""
