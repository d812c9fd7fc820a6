"""Files as sources and sinks: Parquet, JSON lines and CSV in local directories."""

from headrace.connectors.files.sink import FileSink

__all__ = ["FileSink"]
