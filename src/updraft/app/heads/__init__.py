"""Heads by the settings: launched in a cloud, made of this machine, taken back, baked into images.

In come settings and what is asked for; what each step says goes to whoever asked. Read `launching` first.
"""
