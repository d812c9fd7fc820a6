"""Conformance: proves sinks and sources that users write against crashes, in seconds and without Spark."""

from headrace.testing.conformance.sink import SinkReport, check_sink
from headrace.testing.conformance.source import SourceReport, check_source

__all__ = ["SinkReport", "SourceReport", "check_sink", "check_source"]
