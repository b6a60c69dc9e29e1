"""`updraft head`: heads made, listed and taken back, here or in a cloud. Read `head` first."""
