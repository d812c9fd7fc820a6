"""Lists as sources and results in memory, for tests and notebooks."""

from headrace.connectors.memory.markers import Cut, Fail
from headrace.connectors.memory.sink import MemorySink
from headrace.connectors.memory.source import MemorySource

__all__ = ["Cut", "Fail", "MemorySink", "MemorySource"]
