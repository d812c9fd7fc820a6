"""Sources that users write in plain Python: where each partition ends, and the rows between two positions."""

from headrace.connectors.polled.source import PolledSource

__all__ = ["PolledSource"]
