"""What a shop can do without: each folder is a part, and comes off by deleting it."""
