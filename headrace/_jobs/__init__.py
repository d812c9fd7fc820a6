"""A job while it runs: its handle, its restarts, its progress line and its closing summary."""
