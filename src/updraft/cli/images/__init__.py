"""`updraft image`, `images` and `offers`: what clouds have, and images made there. Read `image` first."""
