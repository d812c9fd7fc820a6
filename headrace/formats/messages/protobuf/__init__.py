"""Protobuf messages."""

from headrace.formats.messages.protobuf.format import Protobuf

__all__ = ["Protobuf"]
