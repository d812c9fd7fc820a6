"""Watermarks as pure functions: what the planner knows of time."""
