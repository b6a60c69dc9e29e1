"""`updraft simulate`: what was asked for (`request`), and the verb that runs and shows it (`simulate`)."""
