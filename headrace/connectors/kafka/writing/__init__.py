"""How topics are written: rows as staged records, lanes that publish them, markers that prove it."""

from headrace.connectors.kafka.writing.opening import opened_publisher
from headrace.connectors.kafka.writing.staging import KafkaStager

__all__ = ["KafkaStager", "opened_publisher"]
