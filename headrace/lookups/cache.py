"""What a process remembers of a look-up: the keys used last, for a time, and also that a key has no row."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from headrace.config import to_us
from headrace.errors import BuildError

__all__ = ["MISSING", "Cache", "Entries"]

#: Stands for "not known", as None stands for "known to have no row".
MISSING: Any = object()


@dataclass(frozen=True)
class Cache:
    """How much of what was looked up is kept in each worker process.

    `size` keys, those used last; for `ttl` since the answer, or for good. With `negative` it is also kept that a
    key has no row. A row that changes over there is seen when its entry has run out, so without `ttl` never.
    """

    size: int = 10_000
    ttl: timedelta | None = None
    negative: bool = True
    #: Seconds; for tests.
    clock: Callable[[], float] = field(default=time.monotonic, repr=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise BuildError(
                f"Cache(size={self.size!r}): it is a whole number of 1 or more; for no cache, cache=None."
            )
        if self.ttl is not None:
            to_us(self.ttl, "Cache(ttl=...)")


class Entries:
    """The entries of one look-up in one process."""

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._ttl_s = None if cache is None or cache.ttl is None else cache.ttl.total_seconds()
        #: Key -> when it runs out, and the row; the one used last at the end.
        self._kept: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        # Two jobs in two threads may use the same look-up.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> Any:
        """The row, None if it is known that there is none, or `MISSING`."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is None:
                return MISSING
            if self._ttl_s is not None and self._now() >= entry[0]:
                del self._kept[key]
                return MISSING
            self._kept.move_to_end(key)
            return entry[1]

    def get_all(self, keys: Sequence[Hashable]) -> dict[Hashable, Any]:
        """The same for many keys, which are all different."""
        if not self._kept:
            return dict.fromkeys(keys, MISSING)
        return {key: self.get(key) for key in keys}

    def put(self, key: Hashable, row: Any) -> None:
        """Keep a row, or that there is none, as far as the cache allows it."""
        if self._cache is None or (row is None and not self._cache.negative):
            return
        ends = 0.0 if self._ttl_s is None else self._now() + self._ttl_s
        with self._lock:
            self._kept[key] = (ends, row)
            self._kept.move_to_end(key)
            if len(self._kept) > self._cache.size:
                self._kept.popitem(last=False)

    def _now(self) -> float:
        assert self._cache is not None
        return self._cache.clock()
