"""Real pools on the local cloud, from their first machine to their last."""
