"""Kafka as a source and a sink, exactly once."""

from headrace.connectors.kafka.reading.positions import Committed
from headrace.connectors.kafka.sink import KafkaSink
from headrace.connectors.kafka.source import KafkaSource
from headrace.connectors.kafka.writing.topics import NewTopic

__all__ = ["Committed", "KafkaSink", "KafkaSource", "NewTopic"]
