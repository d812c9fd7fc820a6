"""JSON messages."""

from headrace.formats.messages.json.format import Json

__all__ = ["Json"]
