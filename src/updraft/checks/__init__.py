"""What `updraft check` looks at: small functions of what was answered, each of which yields findings.

`asking` puts all questions at the same time, each with the same deadline; `host`, `clouds` and `pool` judge
the answers; `site` holds them together. Nothing here changes anything, but for one token that lives a minute.
"""

from updraft.checks.asking import Answer, ask
from updraft.checks.finding import Finding, State
from updraft.checks.host import LedgerFacts
from updraft.checks.site import Site, look

__all__ = ["Answer", "Finding", "LedgerFacts", "Site", "State", "ask", "look"]
