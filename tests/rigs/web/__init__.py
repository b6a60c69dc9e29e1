"""The page in a real browser: its process over a made ledger, Chromium, a pool with trouble to look at."""
