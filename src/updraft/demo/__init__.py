"""A whole pool on this machine: the demonstration, and the ground that the integration tests stand on."""
