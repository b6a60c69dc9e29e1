"""Clouds: the contract of a driver (`base`), a folder for each driver, and wrappers that fit all of them.

Drivers know nothing of each other. Read `base` first, then `fake`, the smallest driver.
"""
