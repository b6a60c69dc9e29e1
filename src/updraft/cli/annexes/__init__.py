"""`updraft annex`: machines asked for by hand. Read `annex` first, which has the verbs."""
