"""Rows behind a map or a list: a grouped table by key and entry, read and written for many keys at once."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.columns import values
from headrace._runtime.process.touched import Touched
from headrace._runtime.results import build_column
from headrace._runtime.state import ShardState, Table, TableSpec, ValueSpec
from headrace._runtime.state.spec import fixed_dtype
from headrace.errors import UserCodeError
from headrace.keys import extend_hashes
from headrace.state import StateSpec

__all__ = ["MEMBER", "SMALL", "TOUCHED", "Grouped", "grouped_table", "refusal_of_none"]

Integers = npt.NDArray[np.int64]

#: The last key column: the map's key, the number of an item.
MEMBER = "#member"
#: When an entry of a state with a TTL was touched.
TOUCHED = "@touched"
#: Groups up to this size are read whole, together with those of all other keys of the epoch.
SMALL = 64
_VALUE = "="
_NONE = "#none"
_NEVER = np.iinfo(np.int64).max


def grouped_table(spec: StateSpec, keys: pa.Schema) -> TableSpec:
    """The table of a map or a list."""
    kind = pa.int64() if spec.key_type is None else spec.key_type
    columns = [ValueSpec(_VALUE, spec.type)]
    if _needs_mask(spec):
        columns.append(ValueSpec(_NONE, pa.bool_(), initial=False))
    if spec.ttl is not None:
        columns.append(ValueSpec(TOUCHED, pa.int64(), 0))
    keyed = keys.append(pa.field(MEMBER, kind))
    return TableSpec(_name_of(spec), keyed, tuple(columns), grouped=True)


class Grouped:
    """The rows of one state, told apart by the codes of their keys."""

    def __init__(self, spec: StateSpec, state: ShardState, touched: Touched, uid: str) -> None:
        self._spec = spec
        self._name = _name_of(spec)
        self._state = state
        self._touched = touched
        self._uid = uid
        self._field = pa.field(spec.name, spec.type)
        self._masked = _needs_mask(spec)
        kind = spec.type
        self._is_number = pt.is_integer(kind) or kind in (pa.float32(), pa.float64(), pa.bool_())

    @property
    def table(self) -> Table:
        """Where they lie; it is opened when it is first needed."""
        return self._state.table(self._name, 0)

    def members(self, codes: Integers, at_most: int | None = None) -> tuple[Integers, Integers]:
        """The slots of these keys' rows, one key behind the other, and how many each has; see `Table.members`."""
        if not self._state.buckets(self._name):
            return np.empty(0, np.int64), np.zeros(len(codes), np.int64)
        touched = self._touched
        return self.table.members(touched.hashes(codes), touched.columns(codes), at_most=at_most)

    def names(self, slots: Integers) -> pa.Array:
        """The last key column of these rows."""
        return self.table.key(-1, slots)

    def objects(self, slots: Integers) -> list[Any]:
        """The values of these rows in stored form; with a TTL, pairs of when each was touched and the value."""
        found = self._plain_objects(slots)
        if self._masked:
            for place in np.flatnonzero(self.table.get(_NONE, slots)).tolist():
                found[place] = None
        if self._spec.ttl is None:
            return found
        times: Any = self.table.get(TOUCHED, slots)
        return list(zip(times.tolist(), found, strict=True))

    def _plain_objects(self, slots: Integers) -> list[Any]:
        if self._is_number:
            numbers: Any = self.table.get(_VALUE, slots)
            return list(numbers.tolist())
        return values(self.table.arrow(_VALUE, slots))

    def remove(self, codes: Integers, names: pa.Array) -> None:
        """Remove single rows, those that are there."""
        if not self._state.buckets(self._name):
            return
        own = self._touched.hashes(codes)
        keys = [*self._touched.columns(codes), names]
        slots = self.table.find(extend_hashes(own, [names]), keys)
        self.table.remove(slots[slots >= 0])

    def remove_all(self, codes: Integers) -> None:
        """Remove all rows of these keys."""
        if len(codes):
            slots, _ = self.members(codes)
            if len(slots):
                self.table.remove(slots)

    def write(self, codes: Integers, names: pa.Array, objects: Sequence[Any]) -> None:
        """Put rows there, with what `objects` reads."""
        own = self._touched.hashes(codes)
        keys = [*self._touched.columns(codes), names]
        slots, _ = self.table.upsert(extend_hashes(own, [names]), keys, own)
        if self._spec.ttl is not None:
            self.table.put(TOUCHED, slots, np.array([time for time, _ in objects], np.int64))
            objects = [value for _, value in objects]
        self.table.put(_VALUE, slots, build_column(objects, self._field, self._wrong))
        if self._masked:
            self.table.put(_NONE, slots, np.array([value is None for value in objects]))

    def expire(self, codes: Integers, now: int) -> Integers:
        """Remove the rows of these keys that have expired; for each, when the next one will have, 0 if there is none."""
        slots, counts = self.members(codes)
        following = np.zeros(len(codes), np.int64)
        if len(slots):
            assert self._spec.ttl is not None
            times = self.table.get(TOUCHED, slots) + self._spec.ttl.ttl_us
            is_over = times <= now
            self.table.remove(slots[is_over])
            times[is_over] = _NEVER
            there = np.flatnonzero(counts)
            following[there] = np.minimum.reduceat(times, (np.cumsum(counts) - counts)[there])
            following[following == _NEVER] = 0
        return following

    def _wrong(self, _: int, what: str) -> UserCodeError:
        return UserCodeError(f"The state '{self._spec.name}' of step '{self._uid}': {what}.")


def refusal_of_none(spec: StateSpec, uid: str, hint: str) -> str | None:
    """What to say to None where a value is wanted; None if it is declared that values may be that."""
    if _allows_none(spec.annotation):
        return None
    return (
        f"The state '{spec.name}' of step '{uid}' does not take None: {hint}, or declare that a value may be"
        " None (int | None)."
    )


def _name_of(spec: StateSpec) -> str:
    return f"{spec.kind}:{spec.name}"


def _needs_mask(spec: StateSpec) -> bool:
    """Whether None is a value that the column itself cannot hold."""
    return _allows_none(spec.annotation) and fixed_dtype(spec.type) is not None


def _allows_none(annotation: Any) -> bool:
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return annotation is None or (is_union and type(None) in get_args(annotation))
