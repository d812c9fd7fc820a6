"""The best pair of each key."""
