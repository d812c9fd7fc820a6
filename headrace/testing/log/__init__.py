"""A transactional log in memory: what Kafka is to a pipeline, without a broker.

A `Log` has an address; `KafkaSource` and `KafkaSink` with that address run as they are, on clients of the log. Errors
are those of the client library. The clients have the methods that the connector calls; any other is an error.
"""

from headrace.testing.log.faults import Killed
from headrace.testing.log.log import Log, LogRecord, OpenTransaction

__all__ = ["Killed", "Log", "LogRecord", "OpenTransaction"]
