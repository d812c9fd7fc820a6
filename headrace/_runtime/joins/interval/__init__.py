"""Pairs whose times are near each other."""
