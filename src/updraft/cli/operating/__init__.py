"""What an operator asks of a pool that runs: of its machines (`wishes`) and of its clouds (`cloud`)."""
