"""Functions on columns: one call for all rows of a shard."""
