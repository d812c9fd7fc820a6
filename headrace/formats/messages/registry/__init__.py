"""Messages framed with the id of their schema in a registry, and asking the registry."""

from headrace.formats.messages.registry.format import Registered
from headrace.formats.messages.registry.registry import Registry

__all__ = ["Registered", "Registry"]
