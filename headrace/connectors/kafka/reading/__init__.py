"""How topics are read: which offsets exist, which of them an epoch takes, and records as rows."""

from headrace.connectors.kafka.reading.enumerator import KafkaEnumerator
from headrace.connectors.kafka.reading.positions import Committed
from headrace.connectors.kafka.reading.ranges import records_of

__all__ = ["Committed", "KafkaEnumerator", "records_of"]
