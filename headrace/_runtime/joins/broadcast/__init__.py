"""Rows beside a table that every shard has."""
