"""Look-ups: rows of a system outside by key, many keys to a call."""

from headrace.lookups.cache import Cache
from headrace.lookups.function import LookupFunction

__all__ = ["Cache", "LookupFunction"]
