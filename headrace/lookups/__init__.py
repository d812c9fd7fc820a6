"""Look-ups: rows of a system outside by key, many keys to a call; and tables in files."""

from headrace.lookups.cache import Cache
from headrace.lookups.file_table import FileTable
from headrace.lookups.function import LookupFunction

__all__ = ["Cache", "FileTable", "LookupFunction"]
