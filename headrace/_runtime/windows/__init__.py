"""Event-time windows: pre-aggregation before the shuffle, panes, firing and lateness behind it."""
