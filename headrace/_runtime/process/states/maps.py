"""Maps of keys, as functions see them: `hr.state.Map`.

Entries are told apart as keys are (`headrace.keys`): every NaN is the same, and -0.0 is 0.0; there is no entry for
None. They are shown in the order of their stored keys: an order that neither shards nor restarts nor the cuts between
epochs can change, which the order of their coming is not without a number for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.process.cursor import Cursor
from headrace._runtime.process.states.entries import ABSENT, NAN, Maps
from headrace._runtime.process.states.grouped import refusal_of_none
from headrace._runtime.process.states.lifetime import Lifetime
from headrace._runtime.process.states.shapes import attacher, detacher
from headrace.errors import UserCodeError
from headrace.state import StateSpec

__all__ = ["MapHandle", "Maps"]

#: Keys of these types are what they are stored as, if they are of this class.
_PLAIN = {pa.string(): str, pa.large_string(): str, pa.binary(): bytes, pa.bool_(): bool}


class MapHandle:
    """What a function sees of a map; it outlives epochs, and each gives it other entries."""

    __slots__ = (
        "_at",
        "_attach",
        "_detach",
        "_entry",
        "_life",
        "_maps",
        "_no_none",
        "_plain",
        "_shown",
    )

    def __init__(self, spec: StateSpec, uid: str, cursor: Cursor) -> None:
        assert spec.key_type is not None
        self._at = cursor
        self._detach = detacher(spec.type, spec.name, uid, spec.codec)
        self._no_none = refusal_of_none(spec, uid, "remove(key) takes an entry away")
        self._attach = attacher(spec.annotation, spec.type, spec.codec)
        self._entry = _entry_of(spec, uid)
        self._plain = None if spec.key_codec is not None else _PLAIN.get(spec.key_type)
        self._shown = attacher(spec.key_annotation, spec.key_type, spec.key_codec)
        self._life = None if spec.ttl is None else Lifetime(spec.ttl, cursor)
        self._maps: Maps

    def serve(self, maps: Maps) -> None:
        """From now on it is a view of this."""
        self._maps = maps

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of an entry, or `default`."""
        # As `_find`, which costs a call: this is what functions do for every row.
        if type(key) is not self._plain:
            key = self._entry(key)
        code = self._at.code
        entries = self._maps.maps[code]
        found = self._maps.ask(code, key) if entries is None else entries.get(key, ABSENT)
        if self._life is not None and found is not ABSENT:
            found = self._living(code, key, *found)
        if found is ABSENT:
            return default
        return found if self._attach is None else self._attach(found)

    def put(self, key: Any, value: Any) -> None:
        """Put an entry there."""
        if type(key) is not self._plain:
            key = self._entry(key)
        kept = self._detach(value)
        if kept is None and self._no_none is not None:
            raise UserCodeError(self._no_none)
        if self._life is not None:
            kept = (self._life.now(), kept)
        self._maps.put(self._at.code, key, kept)

    def put_all(self, entries: Mapping[Any, Any]) -> None:
        """Put several entries there."""
        for key, value in entries.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Take an entry away, if it is there."""
        self._maps.put(self._at.code, self._entry(key), ABSENT)

    def contains(self, key: Any) -> bool:
        """Whether there is such an entry."""
        return self._find(key) is not ABSENT

    def keys(self) -> list[Any]:
        """The keys of all entries, in their order."""
        keys = [key for key, _ in self._all()]
        return keys if self._shown is None else list(map(self._shown, keys))

    def values(self) -> list[Any]:
        """The values of all entries, in the order of their keys."""
        values = [value for _, value in self._all()]
        return values if self._attach is None else list(map(self._attach, values))

    def items(self) -> list[tuple[Any, Any]]:
        """All entries, in the order of their keys."""
        pairs = self._all()
        if self._shown is not None:
            pairs = [(self._shown(key), value) for key, value in pairs]
        if self._attach is not None:
            pairs = [(key, self._attach(value)) for key, value in pairs]
        return pairs

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return len(self) == 0

    def clear(self) -> None:
        """Take all entries away."""
        self._maps.clear(self._at.code)

    def __getitem__(self, key: Any) -> Any:
        found = self._find(key)
        if found is ABSENT:
            raise KeyError(key)
        return found if self._attach is None else self._attach(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        if self._find(key) is ABSENT:
            raise KeyError(key)
        self.remove(key)

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not ABSENT

    def __len__(self) -> int:
        code = self._at.code
        life = self._life
        if life is None:
            return self._maps.size(code)
        return sum(life.is_alive(time) for time, _ in self._maps.whole(code).values())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def _find(self, key: Any) -> Any:
        """The stored value of an entry, or `ABSENT`."""
        if type(key) is not self._plain:
            key = self._entry(key)
        code = self._at.code
        entries = self._maps.maps[code]
        found = self._maps.ask(code, key) if entries is None else entries.get(key, ABSENT)
        if self._life is None or found is ABSENT:
            return found
        return self._living(code, key, *found)

    def _all(self) -> list[tuple[Any, Any]]:
        """All entries as they are stored, in the order of their keys."""
        code = self._at.code
        entries = self._maps.whole(code)
        pairs = [(key, entries[key]) for key in _in_order(entries)]
        if self._life is None:
            return pairs
        living = [(key, self._living(code, key, *found)) for key, found in pairs]
        return [(key, value) for key, value in living if value is not ABSENT]

    def _living(self, code: int, key: Any, time: int, value: Any) -> Any:
        """The value of an entry that was touched then, or `ABSENT`; reading may touch it."""
        life = self._life
        assert life is not None
        if not life.is_alive(time):
            return ABSENT
        if life.by_reading and time < life.now():
            self._maps.put(code, key, (life.now(), value))
        return value


def _entry_of(spec: StateSpec, uid: str) -> Callable[[Any], Any]:
    """A function from what a user gives as the key of an entry to what it is kept under."""
    assert spec.key_type is not None
    detach = detacher(spec.key_type, spec.name, uid, spec.key_codec)
    is_float = pt.is_floating(spec.key_type)

    def entry(key: Any) -> Any:
        stored = None if key is None else detach(key)
        if stored is None:
            raise UserCodeError(
                f"The map '{spec.name}' of step '{uid}' has no entry for None: leave such rows out, or give"
                " what is missing a key of its own."
            )
        if is_float:
            return NAN if isnan(stored) else stored + 0.0
        return stored

    return entry


def _in_order(entries: Mapping[Any, Any]) -> list[Any]:
    if NAN in entries:
        return sorted(entries, key=lambda key: (isnan(key), key))
    return sorted(entries)
