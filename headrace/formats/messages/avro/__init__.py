"""Avro messages."""

from headrace.formats.messages.avro.format import Avro

__all__ = ["Avro"]
