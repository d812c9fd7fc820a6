"""States of one value for a key: `Value`, `Reducing`, `Aggregating`.

All of a step's lie in one table, so that a key is looked up once. In an epoch each is a list by code.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.columns import values as python_values
from headrace._runtime.process.cursor import Cursor, Journal
from headrace._runtime.process.layout import KEYS, THERE, Layout, column_of, touched_of
from headrace._runtime.process.states.lifetime import Lifetime
from headrace._runtime.process.states.shapes import attacher, detacher, exact_type, is_nested
from headrace._runtime.process.touched import Touched
from headrace._runtime.results import build_column
from headrace._runtime.state import ShardState
from headrace._runtime.state.index import distinct
from headrace.errors import UserCodeError
from headrace.state import StateSpec

__all__ = ["AggregatingHandle", "Kept", "ReducingHandle", "ValueHandle", "Values", "handle_of"]

Integers = npt.NDArray[np.int64]


class Kept:
    """One state in one epoch: by code, the stored form of its value or None."""

    __slots__ = ("changed", "journal", "touched", "values")

    def __init__(self, journal: Journal, *, expires: bool) -> None:
        self.values: list[Any] = []
        #: By code, when it was touched, if it has a TTL.
        self.touched: list[int] | None = [] if expires else None
        #: The codes whose value changed, or was touched; some more than once.
        self.changed = array("q")
        self.journal = journal


class ValueHandle:
    """What a function sees of a value; it outlives epochs, and each gives it other lists."""

    __slots__ = ("_at", "_attach", "_detach", "_exact", "_kept", "_life")

    def __init__(self, spec: StateSpec, uid: str, cursor: Cursor) -> None:
        self._at = cursor
        self._detach = detacher(spec.type, spec.name, uid, spec.codec)
        #: Values of just this class are stored as they are.
        self._exact = exact_type(spec.type) if spec.codec is None else None
        self._attach = attacher(spec.annotation, spec.type, spec.codec)
        self._life = None if spec.ttl is None else Lifetime(spec.ttl, cursor)
        self._kept = Kept(None, expires=False)

    def serve(self, kept: Kept) -> None:
        """From now on it is a view of this."""
        self._kept = kept

    def value(self) -> Any:
        """The value; None if there is none."""
        kept = self._kept
        found = kept.values[self._at.code]
        if found is None:
            return None
        if self._life is not None and not self._is_alive(self._life):
            return None
        return found if self._attach is None else self._attach(found)

    def update(self, value: Any) -> None:
        """Put a value there."""
        kept, code = self._kept, self._at.code
        if type(value) is not self._exact and value is not None:
            value = self._detach(value)
        if kept.journal is not None:
            kept.journal.append((kept.values.__setitem__, code, kept.values[code]))
        kept.values[code] = value
        kept.changed.append(code)
        if self._life is not None:
            self._touch(self._life.now())

    def clear(self) -> None:
        """Take it away."""
        if self._kept.values[self._at.code] is not None:
            self.update(None)

    def _is_alive(self, life: Lifetime) -> bool:
        """Whether the value has not expired; reading may touch it."""
        kept, code = self._kept, self._at.code
        assert kept.touched is not None
        if not life.is_alive(kept.touched[code]):
            return False
        # A row from before does not shorten a life by looking.
        if life.by_reading and life.now() > kept.touched[code]:
            self._touch(life.now())
            kept.changed.append(code)
        return True

    def _touch(self, now: int) -> None:
        kept, code = self._kept, self._at.code
        assert kept.touched is not None
        if kept.journal is not None:
            kept.journal.append((kept.touched.__setitem__, code, kept.touched[code]))
        kept.touched[code] = now


class PlainValueHandle(ValueHandle):
    """A value that needs no care: it is stored as it is and lives as long as its key. Most are of this kind."""

    __slots__ = ("_changed", "_journal", "_values")

    def serve(self, kept: Kept) -> None:
        """From now on it is a view of this."""
        self._kept = kept
        if isinstance(kept, Kept):
            self._values, self._changed, self._journal = kept.values, kept.changed, kept.journal
        else:
            # It stands there to refuse whatever is asked of it.
            self._values = self._changed = kept

    def value(self) -> Any:
        """The value; None if there is none."""
        return self._values[self._at.code]

    def update(self, value: Any) -> None:
        """Put a value there."""
        code = self._at.code
        if type(value) is not self._exact and value is not None:
            value = self._detach(value)
        if self._journal is not None:
            self._journal.append((self._values.__setitem__, code, self._values[code]))
        self._values[code] = value
        self._changed.append(code)


class ReducingHandle(ValueHandle):
    """A value that others are folded into."""

    __slots__ = ("_reduce",)

    def __init__(self, spec: StateSpec, uid: str, cursor: Cursor) -> None:
        super().__init__(spec, uid, cursor)
        self._reduce = spec.function

    get = ValueHandle.value

    def add(self, value: Any) -> None:
        """Fold a value in."""
        found = self.value()
        self.update(value if found is None else self._reduce(found, value))


class AggregatingHandle(ValueHandle):
    """An accumulator."""

    __slots__ = ("_function",)

    def __init__(self, spec: StateSpec, uid: str, cursor: Cursor) -> None:
        super().__init__(spec, uid, cursor)
        self._function = spec.function

    def get(self) -> Any:
        """The result; None if nothing was added."""
        found = self.value()
        return None if found is None else self._function.get_result(found)

    def add(self, value: Any) -> None:
        """Fold a value in."""
        found = self.value()
        if found is None:
            found = self._function.create_accumulator()
        self.update(self._function.add(value, found))


_HANDLES: dict[str, type[ValueHandle]] = {
    "value": ValueHandle,
    "reducing": ReducingHandle,
    "aggregating": AggregatingHandle,
}


def handle_of(spec: StateSpec, uid: str, cursor: Cursor) -> ValueHandle:
    """What a function sees of a state with one value."""
    bare = spec.ttl is None and spec.codec is None and not is_nested(spec.type)
    if spec.kind == "value" and bare:
        return PlainValueHandle(spec, uid, cursor)
    return _HANDLES[spec.kind](spec, uid, cursor)


class Values:
    """All values of the keys that an epoch touches."""

    def __init__(
        self, layout: Layout, state: ShardState, touched: Touched, journal: Journal
    ) -> None:
        self._uid = layout.node.uid
        self._specs = layout.values
        self._state = state
        self._touched = touched
        self.kept = [Kept(journal, expires=spec.ttl is not None) for spec in self._specs]
        #: By code, the slot in the table; -1 is none.
        self._slots: Integers = np.empty(0, np.int64)

    def load(self, first: int) -> None:
        """Read the values of the keys from this code on."""
        codes = np.arange(first, len(self._touched))
        slots = np.full(len(codes), -1, np.int64)
        if self._state.buckets(KEYS):
            table = self._state.table(KEYS, 0)
            slots = table.find(self._touched.hashes(codes), self._touched.columns(codes))
        self._slots = np.concatenate([self._slots, slots])
        found = np.flatnonzero(slots >= 0)
        if len(found):
            self._read(slots[found], found, len(codes))
            return
        for kept in self.kept:
            kept.values.extend([None] * len(codes))
            if kept.touched is not None:
                kept.touched.extend([0] * len(codes))

    def write(self) -> None:
        """Put what changed into the table; a key without any value leaves it."""
        changed = [distinct(np.array(kept.changed, np.int64)) for kept in self.kept]
        codes = changed[0] if len(changed) == 1 else distinct(np.concatenate(changed))
        if not len(codes):
            return
        there = self._masks(codes)
        gone = codes[(there == 0) & (self._slots[codes] >= 0)]
        table = self._state.table(KEYS, 0)
        if len(gone):
            table.remove(self._slots[gone])
            self._slots[gone] = -1
        stay = there != 0
        if stay.any():
            self._place(codes[stay])
            slots = self._slots[codes[stay]]
            table.put(THERE, slots, there[stay])
            for spec, kept, own in zip(self._specs, self.kept, changed, strict=True):
                self._write(spec, kept, own)

    def aged(self, domain: str) -> Iterator[int]:
        """The keys whose values that live for a time were touched."""
        for _, kept in self._mortal(domain):
            yield from kept.changed

    def expire(self, domain: str, codes: Sequence[int], now: int) -> list[int]:
        """Take away what is over; for each key when the next can be, 0 if nothing is left that can."""
        nexts = [0] * len(codes)
        for ttl_us, kept in self._mortal(domain):
            assert kept.touched is not None
            for place, code in enumerate(codes):
                if kept.values[code] is None:
                    continue
                over = kept.touched[code] + ttl_us
                if over <= now:
                    kept.values[code] = None
                    kept.changed.append(code)
                elif not nexts[place] or over < nexts[place]:
                    nexts[place] = over
        return nexts

    def _mortal(self, domain: str) -> Iterator[tuple[int, Kept]]:
        for spec, kept in zip(self._specs, self.kept, strict=True):
            if spec.ttl is not None and spec.ttl.time == domain:
                yield spec.ttl.ttl_us, kept

    def _read(self, slots: Integers, places: Integers, many: int) -> None:
        """Read what is in these slots for the keys at these places of so many new ones."""
        table = self._state.table(KEYS, 0)
        there: Any = table.get(THERE, slots)
        for number, (spec, kept) in enumerate(zip(self._specs, self.kept, strict=True)):
            found = python_values(table.arrow(column_of(spec), slots))
            objects = np.full(many, None, object)
            objects[places] = np.fromiter(found, object, len(found))
            objects[places[(there >> number) & 1 == 0]] = None
            kept.values += objects.tolist()
            if kept.touched is not None:
                stamps = np.zeros(many, np.int64)
                stamps[places] = table.get(touched_of(spec), slots)
                kept.touched += stamps.tolist()

    def _masks(self, codes: Integers) -> Integers:
        there = np.zeros(len(codes), np.int64)
        chosen = codes.tolist()
        for number, kept in enumerate(self.kept):
            values = kept.values
            bits = np.fromiter((values[c] is not None for c in chosen), np.bool_, len(chosen))
            there |= bits.astype(np.int64) << number
        return there

    def _place(self, codes: Integers) -> None:
        """Give slots to keys that have none."""
        new = codes[self._slots[codes] < 0]
        if len(new):
            table = self._state.table(KEYS, 0)
            self._slots[new], _ = table.upsert(
                self._touched.hashes(new), self._touched.columns(new)
            )

    def _write(self, spec: StateSpec, kept: Kept, codes: Integers) -> None:
        objects = list(map(kept.values.__getitem__, codes.tolist()))
        there = np.array([value is not None for value in objects], np.bool_)
        if not there.all():
            codes, objects = codes[there], [value for value in objects if value is not None]
        if not objects:
            return
        column = build_column(objects, pa.field(spec.name, spec.type), self._wrong)
        table, slots = self._state.table(KEYS, 0), self._slots[codes]
        table.put(column_of(spec), slots, column)
        if kept.touched is not None:
            touched = np.array(list(map(kept.touched.__getitem__, codes.tolist())), np.int64)
            table.put(touched_of(spec), slots, touched)

    def _wrong(self, _: int, what: str) -> UserCodeError:
        return UserCodeError(f"The state of step '{self._uid}' cannot be stored: {what}.")
