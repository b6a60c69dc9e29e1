"""What was used and paid: the records of the ledger in, a report or another program's form out.

Every figure is an estimate, at the list prices of the day, and says so. Start with `report`.
"""

NOT_THE_BILL = "estimate, not the bill"
"""What every report says of its figures."""
