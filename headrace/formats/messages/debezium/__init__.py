"""Debezium's change events, as JSON and as Avro."""

from headrace.formats.messages.debezium.avro import DebeziumAvro
from headrace.formats.messages.debezium.json import DebeziumJson

__all__ = ["DebeziumAvro", "DebeziumJson"]
