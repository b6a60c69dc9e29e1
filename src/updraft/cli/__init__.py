"""The command line: one module for each family of verbs, loaded when the verb is called."""
