"""All pairs of all that ever came, as changes."""
