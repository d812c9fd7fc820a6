"""A database in memory that runs the production code of the table sinks and sources, and fails when a test asks it to."""

from headrace.testing.database.database import Database

__all__ = ["Database"]
