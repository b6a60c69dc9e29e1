"""Tokens as the whole daemon sees to them: handed over at a boot, noted, and over with their machines."""
