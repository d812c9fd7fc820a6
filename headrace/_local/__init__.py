"""Runs a plan in this process on state in memory: for tests, and for a look at a pipeline without Spark."""
