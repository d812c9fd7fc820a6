"""Functions with state and timers for each key: the engine of `process`."""
