"""What other programs take: a report, or the records themselves, in their forms."""
