"""The files of earlier systems: what each is, by its content, and the values in it. Read `reading` first."""
