"""Joins: rows of several inputs that meet by key."""
