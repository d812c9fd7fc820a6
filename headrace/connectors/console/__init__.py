"""Rows on the terminal."""

from headrace.connectors.console.sink import ConsoleSink

__all__ = ["ConsoleSink"]
