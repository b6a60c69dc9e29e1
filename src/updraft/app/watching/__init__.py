"""What looks on: the page (`web`), metrics and alarms (`monitoring`), the report of some days (`reporting`).

In goes a configuration; each reads what the daemon has written down, and changes nothing.
"""
