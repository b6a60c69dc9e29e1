"""What a simulation came to: figures (`metrics`), plots, and the page that has them. Read `metrics` first."""
