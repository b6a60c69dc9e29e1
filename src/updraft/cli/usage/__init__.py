"""What was used and paid."""
