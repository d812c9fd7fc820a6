"""The aggregates: how each is folded before the shuffle, merged behind it, and read out."""
