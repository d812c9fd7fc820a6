"""A coroutine function of keys as a look-up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from headrace.lookups.function import LookupFunction

__all__ = ["AwaitedLookup"]


class AwaitedLookup(LookupFunction[Any, Any]):
    """Asks by calling the function, and keeps nothing."""

    def __init__(self, function: Callable[[Sequence[Any]], Awaitable[Mapping[Any, Any]]]) -> None:
        self._function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return self.__name__

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Any]:
        """What the function says."""
        return await self._function(keys)
