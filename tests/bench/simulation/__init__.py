"""Whole traces in simulated time, beside rivals. Read `simulated` first."""
