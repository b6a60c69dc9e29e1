"""What an OpenStack cloud sells, where, and how much of it is left. Read `offers` first."""
