"""What becomes of each key, program by program: rules, as data where they can be. Read `elastiq` first."""
