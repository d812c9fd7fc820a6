"""Where the arrays of a replica live, and blocks: several growable arrays in one allocation.

An `Arrays` hands out zeroed byte buffers by name and keeps one header that says which buffers make up a
consistent replica. Without a header there is no replica: `mark_dirty` takes it away before the first
change of an epoch, `save_header` puts it back after the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace.endpoints import Json

__all__ = ["Arrays", "Block", "Bytes", "MemoryArrays"]

Bytes: TypeAlias = npt.NDArray[np.uint8]

_COUNTERS = 8
_ALIGN = 64


class Arrays(Protocol):
    """Named zeroed buffers, and the header of the replica that is made of them."""

    def allocate(self, size: int) -> tuple[str, Bytes]:
        """A new buffer of zeros and its name."""

    def open(self, name: str) -> Bytes:
        """The buffer of this name, shared with everyone who opened it."""

    def release(self, name: str) -> None:
        """Nobody will open this buffer again."""

    def load_header(self) -> dict[str, Json] | None:
        """The header last saved, unless changes were begun since or it is not whole."""

    def mark_dirty(self) -> None:
        """Changes begin: until the next `save_header` there is no replica. Cheap when repeated."""

    def save_header(self, header: dict[str, Json]) -> None:
        """Changes are over: the buffers are what `header` says."""

    def clear(self) -> None:
        """Release everything."""

    def close(self) -> None:
        """This epoch is done with the replica."""


class MemoryArrays:
    """Buffers in this process: for tests, for `_local`, and for a task that could not get the lock."""

    def __init__(self) -> None:
        self._buffers: dict[str, Bytes] = {}
        self._header: dict[str, Json] | None = None
        self._serial = 0

    def allocate(self, size: int) -> tuple[str, Bytes]:
        """A new buffer of zeros and its name."""
        self._serial += 1
        name = str(self._serial)
        self._buffers[name] = np.zeros(size, dtype=np.uint8)
        return name, self._buffers[name]

    def open(self, name: str) -> Bytes:
        """The buffer of this name."""
        return self._buffers[name]

    def release(self, name: str) -> None:
        """Forget the buffer."""
        self._buffers.pop(name, None)

    def load_header(self) -> dict[str, Json] | None:
        """The header last saved, unless changes were begun since."""
        return self._header

    def mark_dirty(self) -> None:
        """Changes begin."""
        self._header = None

    def save_header(self, header: dict[str, Json]) -> None:
        """Changes are over."""
        self._header = header

    def clear(self) -> None:
        """Release everything."""
        self._buffers.clear()
        self._header = None

    def close(self) -> None:
        """Nothing to let go of."""


class Block:
    """Named arrays in one buffer, each with its own capacity and length; `counters` are the owner's.

    Growing moves the block to a new buffer: views taken before are of the old one.
    """

    def __init__(
        self,
        arrays: Arrays,
        dtypes: Mapping[str, np.dtype[Any]],
        *,
        name: str,
        buffer: Bytes | None = None,
    ) -> None:
        self._arrays = arrays
        self._dtypes = dtypes
        self.name = name
        self._bind(arrays.open(name) if buffer is None else buffer)

    @classmethod
    def create(
        cls, arrays: Arrays, dtypes: Mapping[str, np.dtype[Any]], capacities: Mapping[str, int]
    ) -> Block:
        """A block of zeros."""
        name, buffer = _new(arrays, dtypes, capacities)
        return cls(arrays, dtypes, name=name, buffer=buffer)

    def __getitem__(self, field: str) -> npt.NDArray[Any]:
        return self._views[field]

    def __contains__(self, field: str) -> bool:
        return field in self._views

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def length(self, field: str) -> int:
        """How many elements of the array were appended."""
        return int(self._lengths[field][0])

    def set_length(self, field: str, length: int) -> None:
        """Shorten or lengthen an array within its capacity."""
        self._lengths[field][0] = length

    def append(self, field: str, values: npt.NDArray[Any]) -> None:
        """Add elements behind the last, growing as needed."""
        length = self.length(field)
        end = length + len(values)
        if end > len(self._views[field]):
            self.grow({field: max(end, 2 * len(self._views[field]))})
        self._views[field][length:end] = values
        self.set_length(field, end)

    def grow(self, capacities: Mapping[str, int], *, blank: frozenset[str] = frozenset()) -> None:
        """Move to a larger buffer; arrays in `blank` start as zeros there."""
        sizes = {field: len(view) for field, view in self._views.items()} | dict(capacities)
        old_name, old_views, old_counters = self.name, self._views, self.counters
        lengths = {field: self.length(field) for field in old_views}
        self.name, buffer = _new(self._arrays, self._dtypes, sizes)
        self._bind(buffer)
        self.counters[:] = old_counters
        for field, view in old_views.items():
            self.set_length(field, lengths[field])
            if field not in blank:
                self._views[field][: len(view)] = view
        self._arrays.release(old_name)

    def release(self) -> None:
        """Give the buffer back."""
        self._arrays.release(self.name)

    def _bind(self, buffer: Bytes) -> None:
        words = buffer[: _header_size(self._dtypes)].view(np.int64)
        self.counters: npt.NDArray[np.int64] = words[:_COUNTERS]
        self._lengths: dict[str, npt.NDArray[np.int64]] = {}
        self._views: dict[str, npt.NDArray[Any]] = {}
        start = _header_size(self._dtypes)
        for place, (field, dtype) in enumerate(self._dtypes.items()):
            capacity = int(words[_COUNTERS + 2 * place])
            self._lengths[field] = words[_COUNTERS + 2 * place + 1 :][:1]
            self._views[field] = buffer[start : start + capacity * dtype.itemsize].view(dtype)
            start += _aligned(capacity * dtype.itemsize)


def _new(
    arrays: Arrays, dtypes: Mapping[str, np.dtype[Any]], capacities: Mapping[str, int]
) -> tuple[str, Bytes]:
    """A buffer for these arrays that knows their capacities."""
    name, buffer = arrays.allocate(_size(dtypes, capacities))
    words = buffer[: _header_size(dtypes)].view(np.int64)
    for place, field in enumerate(dtypes):
        words[_COUNTERS + 2 * place] = capacities[field]
    return name, buffer


def _header_size(dtypes: Mapping[str, np.dtype[Any]]) -> int:
    return _aligned(8 * (_COUNTERS + 2 * len(dtypes)))


def _size(dtypes: Mapping[str, np.dtype[Any]], capacities: Mapping[str, int]) -> int:
    content = (_aligned(capacities[field] * dtype.itemsize) for field, dtype in dtypes.items())
    return _header_size(dtypes) + sum(content)


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN
