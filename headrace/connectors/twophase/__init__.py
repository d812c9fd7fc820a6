"""Sinks that users write in plain Python: in two phases of their own, or behind the spool."""

from headrace.connectors.twophase.sink import TwoPhaseSink
from headrace.connectors.twophase.spooled import SpooledSink

__all__ = ["SpooledSink", "TwoPhaseSink"]
