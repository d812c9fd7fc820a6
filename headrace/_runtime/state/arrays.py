"""Where the arrays of a replica live, and blocks: several growable arrays in one allocation.

A buffer may be larger than what it holds: room that nobody has secured is only an address. So an array that is appended to
grows in its place, and moves, with all others of its block, only when the room is used up.

An `Arrays` hands out zeroed byte buffers by name and keeps one header that says which buffers make up a
consistent replica. Without a header there is no replica: `mark_dirty` takes it away before the first
change of an epoch, `save_header` puts it back after the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace.endpoints import Json
from headrace.errors import EngineError

__all__ = ["Arrays", "Block", "Bytes", "MemoryArrays"]

Bytes: TypeAlias = npt.NDArray[np.uint8]

_COUNTERS = 8
#: Of the header, for each array: its capacity, how much of that is secured, its length.
_WORDS = 3
_ALIGN = 64
_LEAST_MORE = 256


class Arrays(Protocol):
    """Named zeroed buffers, and the header of the replica that is made of them."""

    #: How many times what it needs an array may ask for as room.
    room: int

    def allocate(self, size: int, secured: Sequence[tuple[int, int]]) -> tuple[str, Bytes]:
        """A new buffer of zeros and its name; only the secured ranges of it may be written to."""

    def secure(self, name: str, start: int, stop: int) -> bool:
        """One more range of a buffer may be written to; False if there is no memory for it."""

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

    room = 2

    def __init__(self) -> None:
        self._buffers: dict[str, Bytes] = {}
        self._header: dict[str, Json] | None = None
        self._serial = 0

    def allocate(self, size: int, secured: Sequence[tuple[int, int]]) -> tuple[str, Bytes]:
        """A new buffer of zeros and its name."""
        del secured
        self._serial += 1
        name = str(self._serial)
        self._buffers[name] = np.zeros(size, dtype=np.uint8)
        return name, self._buffers[name]

    def secure(self, name: str, start: int, stop: int) -> bool:
        """All of a buffer may be written to."""
        del name, start, stop
        return True

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
        name, buffer = _new(arrays, dtypes, capacities, capacities)
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

    def secure(self, ends: Mapping[str, int]) -> None:
        """Arrays can be written up to these places, at the same or at a new address."""
        lacking = {field: end for field, end in ends.items() if end > self._secured[field][0]}
        if not all(self._secure(field, end) for field, end in lacking.items()):
            # All arrays move with one that is full, so those that soon would be grow with it: they do not take turns.
            filling = {field: end for field, end in ends.items() if 2 * end > len(self[field])}
            self._move({**filling, **lacking}, self._arrays.room)

    def grow(self, capacities: Mapping[str, int], *, blank: frozenset[str] = frozenset()) -> None:
        """Move to a larger buffer; arrays in `blank` start as zeros there."""
        self._move(capacities, 1, blank)

    def _secure(self, field: str, end: int) -> bool:
        """Take more of an array's room."""
        if end > len(self[field]):
            return False
        stop = min(_ample(end), len(self[field]))
        size, start = self._dtypes[field].itemsize, self._starts[field]
        secured = int(self._secured[field][0])
        if not self._arrays.secure(self.name, start + secured * size, start + stop * size):
            return False
        self._secured[field][0] = stop
        return True

    def _move(
        self, needed: Mapping[str, int], room: int, blank: frozenset[str] = frozenset()
    ) -> None:
        old_name, old_views, old_counters = self.name, self._views, self.counters
        lengths = {field: self.length(field) for field in old_views}
        kept = {field: int(secured[0]) for field, secured in self._secured.items()}
        secured = kept | {f: n if room == 1 else _ample(n) for f, n in needed.items()}
        capacities = {field: len(view) for field, view in old_views.items()}
        roomy = capacities | {field: room * secured[field] for field in needed}
        try:
            self.name, buffer = _new(self._arrays, self._dtypes, roomy, secured)
        except EngineError:
            if room == 1:
                raise
            # Addresses may be limited, too.
            self.name, buffer = _new(self._arrays, self._dtypes, secured, secured)
        self._bind(buffer)
        self.counters[:] = old_counters
        for field, view in old_views.items():
            self.set_length(field, lengths[field])
            if field not in blank:
                self._views[field][: kept[field]] = view[: kept[field]]
        self._arrays.release(old_name)

    def release(self) -> None:
        """Give the buffer back."""
        self._arrays.release(self.name)

    def _bind(self, buffer: Bytes) -> None:
        words = buffer[: _header_size(self._dtypes)].view(np.int64)
        self.counters: npt.NDArray[np.int64] = words[:_COUNTERS]
        self._lengths: dict[str, npt.NDArray[np.int64]] = {}
        self._secured: dict[str, npt.NDArray[np.int64]] = {}
        self._views: dict[str, npt.NDArray[Any]] = {}
        self._starts: dict[str, int] = {}
        capacities = {}
        for place, field in enumerate(self._dtypes):
            own = words[_COUNTERS + _WORDS * place :][:_WORDS]
            capacities[field] = int(own[0])
            self._secured[field], self._lengths[field] = own[1:2], own[2:3]
        for field, start, stop in _layout(self._dtypes, capacities):
            self._starts[field] = start
            self._views[field] = buffer[start:stop].view(self._dtypes[field])


def _ample(elements: int) -> int:
    """A little more than needed: to secure it takes a call."""
    return elements + elements // 4 + _LEAST_MORE


def _new(
    arrays: Arrays,
    dtypes: Mapping[str, np.dtype[Any]],
    capacities: Mapping[str, int],
    secured: Mapping[str, int],
) -> tuple[str, Bytes]:
    """A buffer for these arrays that knows their capacities."""
    header = _header_size(dtypes)
    layout = list(_layout(dtypes, capacities))
    ranges = [(start, start + secured[f] * dtypes[f].itemsize) for f, start, _ in layout]
    size = max((_aligned(stop) for _, _, stop in layout), default=header)
    name, buffer = arrays.allocate(size, [(0, header), *ranges])
    words = buffer[:header].view(np.int64)
    for place, field in enumerate(dtypes):
        words[_COUNTERS + _WORDS * place :][:2] = capacities[field], secured[field]
    return name, buffer


def _layout(
    dtypes: Mapping[str, np.dtype[Any]], capacities: Mapping[str, int]
) -> Iterator[tuple[str, int, int]]:
    """Every array, where it starts, and where it stops."""
    start = _header_size(dtypes)
    for field, dtype in dtypes.items():
        stop = start + capacities[field] * dtype.itemsize
        yield field, start, stop
        start = _aligned(stop)


def _header_size(dtypes: Mapping[str, np.dtype[Any]]) -> int:
    return _aligned(8 * (_COUNTERS + _WORDS * len(dtypes)))


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN
