"""The entries of a map state in one epoch, of all keys that it touches.

What is known of a map stands in a dictionary by entry. Nothing is read before somebody asks; then the small maps of
all keys that the epoch has touched are read at once, and of a large one only the entries that are asked for, one at
a time; when so many were asked for that it would have been cheaper to read them all, the rest is read at once too. To put
an entry reads nothing, unless it may have to be undone. What is kept for an entry is its value in stored form or, if
the state has a TTL, when it was touched and the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.columns import values
from headrace._runtime.process.cursor import Journal
from headrace._runtime.process.states.grouped import SMALL, Grouped, Integers
from headrace._runtime.process.touched import Touched
from headrace._runtime.results import build_column
from headrace._runtime.state import ShardState
from headrace._runtime.state.points import Points
from headrace.errors import UserCodeError
from headrace.state import StateSpec

__all__ = ["ABSENT", "NAN", "Entries", "Maps"]

Entries: TypeAlias = dict[Any, Any]

#: There is no such entry.
ABSENT: Any = object()
#: The one NaN that is a key: a dictionary finds it by identity only.
NAN = float("nan")
_UNKNOWN: Any = object()
#: To find a single entry takes as long as to read so many of a whole map.
_SINGLE = 32
#: Larger maps than this are never read but for their owner's wish: they are all that memory holds then.
_HUGE = 4_096


class _Partial(dict[Any, Any]):
    """What is known of a map whose other entries are in the table; `ABSENT` where it is known that there is none."""

    __slots__ = ("_code", "_maps")

    def __init__(self, maps: Maps, code: int) -> None:
        self._maps = maps
        self._code = code

    def get(self, key: Any, default: Any = None) -> Any:
        """What is kept for an entry, read if it is not known."""
        found = super().get(key, _UNKNOWN)
        if found is _UNKNOWN:
            found = self[key] = self._maps.look_up(self._code, key)
        return default if found is ABSENT else found

    def pop(self, key: Any, default: Any = None) -> Any:
        """There is no such entry any more."""
        self[key] = ABSENT
        return default


class Maps:
    """One map state."""

    def __init__(
        self, spec: StateSpec, state: ShardState, touched: Touched, journal: Journal, uid: str
    ) -> None:
        self._field = pa.field(spec.name, spec.key_type)
        self._ttl = spec.ttl
        self._touched = touched
        self._journal = journal
        self._rows = Grouped(spec, state, touched, uid)
        self._points: Points | None = None
        #: By code; None is a map of which nothing is known.
        self.maps: list[Entries | None] = []
        # The maps that were read, one behind the other, and where that of each code begins and ends.
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._keys: list[Any] = []
        self._kept: list[Any] = []
        # By code, of large maps that were not read: the number of the group, the hash of the key, how many entries.
        self._large: dict[int, tuple[int, int, int]] = {}
        # How many entries the large ones have that may be read, and how many were asked for.
        self._readable = 0
        self._asked = 0
        # What `write` has to do: single entries, and maps that were emptied first.
        self._changed: dict[tuple[int, Any], None] = {}
        self._cleared: dict[int, None] = {}

    def load(self, first: int) -> None:
        """Keys from this code on are new in the epoch."""
        self.maps += [None] * (len(self._touched) - first)

    def ask(self, code: int, key: Any) -> Any:
        """What is kept for an entry of a map of which nothing is known.

        Most functions ask for one entry of a key: to look for it in what was read is cheaper than a dictionary.
        """
        self._read()
        entries = self.maps[code] = _Partial(self, code)
        if code in self._large:
            return entries.get(key, ABSENT)
        try:
            found = self._kept[self._keys.index(key, self._begins[code], self._ends[code])]
        except ValueError:
            found = ABSENT
        entries[key] = found
        return found

    def open(self, code: int) -> Entries:
        """The map of a key, to ask for entries."""
        entries = self.maps[code]
        if entries is None:
            self._read()
            entries = _Partial(self, code) if code in self._large else self._as_read(code)
            self.maps[code] = entries
        return entries

    def whole(self, code: int) -> Entries:
        """The map of a key with all its entries."""
        entries = self.open(code)
        if type(entries) is dict:
            return entries
        self._read()
        whole = self._read_alone(code) if code in self._large else self._as_read(code)
        for key, kept in entries.items():
            if kept is not ABSENT:
                whole[key] = kept
            else:
                whole.pop(key, None)
        self.maps[code] = whole
        return whole

    def size(self, code: int) -> int:
        """How many entries there are; those of a large map are not read."""
        entries = self.open(code)
        if type(entries) is not dict:
            self._read()
        if type(entries) is dict or code not in self._large:
            return len(self.whole(code))
        size = self._large[code][2]
        for key, kept in entries.items():
            size += (kept is not ABSENT) - (self._slot(code, key) >= 0)
        return size

    def look_up(self, code: int, key: Any) -> Any:
        """What is kept for an entry of a map that is known in part."""
        self._read()
        if code not in self._large:
            return self.whole(code).get(key, ABSENT)
        self._asked += 1
        if self._asked * _SINGLE > self._readable and self._large[code][2] <= _HUGE:
            self._read_large()
            return self.whole(code).get(key, ABSENT)
        slot = self._slot(code, key)
        return self._rows.objects(np.array([slot]))[0] if slot >= 0 else ABSENT

    def put(self, code: int, key: Any, kept: Any) -> None:
        """Keep this for an entry; `ABSENT` takes it away."""
        entries = self.maps[code]
        if self._journal is not None:
            old, was = self.open(code).get(key, ABSENT), (code, key) in self._changed
            self._journal.append((self._undo_put, code, key, old, was))
            # To ask may have read the map.
            entries = self.open(code)
        elif entries is None:
            entries = self.maps[code] = _Partial(self, code)
        if kept is ABSENT:
            entries.pop(key, None)
        else:
            entries[key] = kept
        self._changed[code, key] = None

    def clear(self, code: int) -> None:
        """Take all entries of a key away."""
        if self._journal is not None:
            was = code in self._cleared
            self._journal.append((self._undo_clear, code, self.maps[code], was))
        self.maps[code] = {}
        self._cleared[code] = None

    def aged(self, domain: str) -> Iterable[int]:
        """The codes of the keys of which something that lives by this time was touched in the epoch."""
        return {code for code, _ in self._changed} if self._lives_by(domain) else ()

    def expire(self, domain: str, codes: list[int], now: int) -> list[int]:
        """Take away what has expired of these keys; for each, when something will have the next time, or 0.

        It looks at all their entries, as columns, and not only at those that have expired.
        """
        if not self._lives_by(domain):
            return [0] * len(codes)
        assert self._ttl is not None
        for code in codes:
            self._forget_expired(code, now - self._ttl.ttl_us)
        return self._with_changed(codes, self._rows.expire(np.array(codes), now).tolist(), now)

    def renew(self, domain: str, codes: list[int], now: int) -> list[int]:
        """As `expire`, of what was touched in the epoch alone: a look at the rest is planned, and it may be much."""
        nexts = [0] * len(codes)
        return self._with_changed(codes, nexts, now) if self._lives_by(domain) else nexts

    def _with_changed(self, codes: list[int], nexts: list[int], now: int) -> list[int]:
        assert self._ttl is not None
        found = dict(zip(codes, nexts, strict=True))
        for code, key in self._changed:
            kept = self._known(code, key)
            if kept is ABSENT or code not in found:
                continue
            over = kept[0] + self._ttl.ttl_us
            if over > now:
                found[code] = min(found[code] or over, over)
            else:
                self.open(code).pop(key, None)
        return list(found.values())

    def write(self) -> None:
        """Put what changed into the table; once, at the end of the epoch."""
        self._rows.remove_all(np.array(list(self._cleared), np.int64))
        kept, gone, objects = [], [], []
        for pair in self._changed:
            found = self._known(*pair)
            if found is not ABSENT:
                kept.append(pair)
                objects.append(found)
            elif pair[0] not in self._cleared:
                gone.append(pair)
        if gone:
            self._rows.remove(*self._places(gone))
        if kept:
            self._rows.write(*self._places(kept), objects)

    def _lives_by(self, domain: str) -> bool:
        return self._ttl is not None and self._ttl.time == domain

    def _forget_expired(self, code: int, last: int) -> None:
        """Drop what is known in memory and was touched then or before."""
        was_read = code < len(self._ends) and code not in self._large
        if self.maps[code] is None and not was_read:
            return
        # What was read of the map must not give back what is taken away here.
        entries = self.whole(code) if was_read else self.open(code)
        expired = [k for k, kept in entries.items() if kept is not ABSENT and kept[0] <= last]
        for key in expired:
            entries.pop(key, None)

    def _known(self, code: int, key: Any) -> Any:
        entries = self.maps[code]
        assert entries is not None
        # What changed is known; a partial map's own `get` would go and read.
        return dict.get(entries, key, ABSENT)

    def _places(self, pairs: list[tuple[int, Any]]) -> tuple[Integers, pa.Array]:
        names = build_column([key for _, key in pairs], self._field, _misfit)
        return np.array([code for code, _ in pairs], np.int64), names

    def _slot(self, code: int, key: Any) -> int:
        """The slot of an entry of a large map, -1 if there is none in the table."""
        assert self._points is not None
        group, hashed, _ = self._large[code]
        return self._points.find(group, hashed, key)

    def _read(self) -> None:
        """Read the small maps of all keys that were touched since the last time, and find the large ones."""
        if len(self._ends) == len(self.maps):
            return
        codes = np.arange(len(self._ends), len(self.maps))
        slots, counts = self._rows.members(codes, at_most=SMALL)
        is_large = counts > SMALL
        if is_large.any():
            self._note_large(codes[is_large], counts[is_large])
        begins, ends = self._append(slots, np.where(is_large, 0, counts))
        self._begins += begins
        self._ends += ends

    def _append(self, slots: Integers, counts: Integers) -> tuple[list[int], list[int]]:
        """Read maps of so many entries each; where they begin and end."""
        ends = len(self._keys) + np.cumsum(counts)
        if len(slots):
            self._keys += _key_objects(self._rows.names(slots))
            self._kept += self._rows.objects(slots)
        return (ends - counts).tolist(), ends.tolist()

    def _note_large(self, codes: Integers, counts: Integers) -> None:
        self._points = self._points or Points(self._rows.table)
        hashes = self._touched.hashes(codes)
        groups = self._points.groups(hashes, self._touched.columns(codes))
        found = zip(groups.tolist(), hashes.tolist(), counts.tolist(), strict=True)
        self._large |= dict(zip(codes.tolist(), found, strict=True))
        self._readable += int(counts[counts <= _HUGE].sum())

    def _read_large(self) -> None:
        """Read the large maps too, all that are not huge."""
        codes = [code for code, (_, _, count) in self._large.items() if count <= _HUGE]
        spans = self._append(*self._rows.members(np.array(codes)))
        for code, begin, end in zip(codes, *spans, strict=True):
            self._begins[code], self._ends[code] = begin, end
            del self._large[code]
        self._readable = self._asked = 0

    def _as_read(self, code: int) -> Entries:
        """A map as it was read."""
        begin, end = self._begins[code], self._ends[code]
        return dict(zip(self._keys[begin:end], self._kept[begin:end], strict=True))

    def _read_alone(self, code: int) -> Entries:
        """A large map as it is in the table."""
        slots, _ = self._rows.members(np.array([code]))
        keys, kept = _key_objects(self._rows.names(slots)), self._rows.objects(slots)
        return dict(zip(keys, kept, strict=True))

    def _undo_put(self, code: int, key: Any, old: Any, was: bool) -> None:
        entries = self.open(code)
        if old is ABSENT:
            entries.pop(key, None)
        else:
            entries[key] = old
        if not was:
            self._changed.pop((code, key), None)

    def _undo_clear(self, code: int, entries: Entries | None, was: bool) -> None:
        self.maps[code] = entries
        if not was:
            del self._cleared[code]


def _key_objects(names: pa.Array) -> list[Any]:
    """Stored keys of entries. The same ones come again and again: a text is made, and hashed, once."""
    if pt.is_string(names.type) or pt.is_large_string(names.type):
        encoded = names.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        return list(map(distinct.__getitem__, encoded.indices.to_numpy().tolist()))
    found = values(names)
    return [NAN if isnan(key) else key for key in found] if pt.is_floating(names.type) else found


def _misfit(_: int, what: str) -> UserCodeError:
    return UserCodeError(f"The key of an entry cannot be stored: {what}.")
