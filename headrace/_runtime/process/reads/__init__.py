"""Declared state read from outside. Pure."""
