"""A simulation fast enough for whole traces: the real decision in a lean world. Read `simulation` first."""
