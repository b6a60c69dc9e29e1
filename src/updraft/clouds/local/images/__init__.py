"""What machines of the local cloud start from: images made of layers. Read `image` first."""
