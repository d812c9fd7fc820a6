"""Look-backs: each row with the aggregates over the rows of its key that came shortly before it."""
