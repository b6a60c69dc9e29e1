"""Tokens: whose they are, how they are made, and how they end before their time. Read `workers` first."""
