"""What happens to a pool: drawn from a seed by `script`, done to a `world` by one module for each side."""
