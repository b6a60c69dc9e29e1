"""What single verbs ask of a pool: `check`, `explain`, `simulate`, `image make` and `pool load`."""
