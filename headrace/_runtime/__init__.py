"""Arrow operators and their state. Runs in workers, in `_local` and in tests; knows nothing of Spark."""
