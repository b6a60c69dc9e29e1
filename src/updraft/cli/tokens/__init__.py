"""`updraft tokens`: which tokens let machines into the pool, and how they end. Read `tokens` first."""
