"""Aligned windows: rows folded by key and pane, panes put together when a window fires."""
