"""Files as sources and sinks: Parquet, JSON lines and CSV in local directories."""

from headrace.connectors.files.sink import FileSink
from headrace.connectors.files.source import FileSource

__all__ = ["FileSink", "FileSource"]
