"""What may still be bought: limits, quotas and rests (`budget`), and how fast machines may join (`pace`)."""
