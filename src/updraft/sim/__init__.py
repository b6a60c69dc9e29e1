"""Simulated time: the real decisions on fake clouds and a simulated pool."""
