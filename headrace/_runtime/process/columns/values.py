"""Values of many keys at once: what a function on columns sees of `Value`, and how they lie in the table of keys.

Everything is written to the table at once; a key that has no value left leaves it when the call is over. Nothing
here looks at a single key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.process.columns.fitting import as_column, filled, numpy_type, shown_as
from headrace._runtime.process.columns.keys import Keys, as_places
from headrace._runtime.process.columns.lifetimes import Lifetimes, Present
from headrace._runtime.process.layout import KEYS, THERE, Layout, column_of
from headrace._runtime.state import ShardState, Table
from headrace._runtime.state.columns import plain, to_arrow
from headrace._runtime.state.index import distinct
from headrace.errors import UserCodeError
from headrace.state import StateSpec

__all__ = ["KeptColumns", "ValueColumn"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class KeptColumns:
    """The values of the keys of one call after the other."""

    def __init__(self, layout: Layout, state: ShardState) -> None:
        self._state = state
        self._lifetimes = Lifetimes(layout, state)
        self._call: tuple[Keys, Present] | None = None
        # By place, the slot in the table, -1 is none; found when first asked for.
        self._slots: Integers | None = None
        self._cleared: list[Integers] = []
        self.numbers = {spec.name: number for number, spec in enumerate(layout.values)}

    def begin(self, keys: Keys, at: Present) -> None:
        """A call with these keys begins."""
        self._call, self._slots = (keys, at), None

    def end(self) -> None:
        """It is over: keys without any value leave the table."""
        if self._call is not None and self._slots is not None:
            self._cleared += self._lifetimes.end(self._call[0], self._slots, self._call[1])
        self._call = self._slots = None
        self._sweep()

    def expire(self, domain: str, before: int, reached: int) -> None:
        """Time moves, between two calls: take away what is over by that."""
        self._cleared.append(self._lifetimes.expire(domain, before, reached))
        self._sweep()

    def forget(self, domain: str, reached: int) -> None:
        """The epoch is over."""
        self._lifetimes.forget(domain, reached)

    @property
    def keys(self) -> Keys | None:
        """The keys of the call; None if there is none."""
        return None if self._call is None else self._call[0]

    @property
    def table(self) -> Table:
        """Where they lie."""
        return self._state.table(KEYS, 0)

    def find(self, number: int, places: Integers | None) -> tuple[Integers, Mask]:
        """The slots of these keys and whether the value of this number is there; where not, any slot."""
        assert self._call is not None
        slots, there = self._stored(number, places)
        return slots, self._lifetimes.living(number, places, slots, there, self._call[1])

    def claim(self, number: int, places: Integers | None) -> Integers:
        """The slots of these keys, where the value of this number is now there."""
        assert self._call is not None
        found = self._found()
        asked = found if places is None else found[places]
        missing = asked < 0
        if missing.any():
            self._insert(np.flatnonzero(missing) if places is None else distinct(places[missing]))
            asked = found if places is None else found[places]
        there = self.table.values(THERE)
        there[asked] |= 1 << number
        self._lifetimes.touch(number, places, asked, self._call[1])
        return asked

    def clear(self, number: int, places: Integers | None) -> None:
        """The value of this number is gone."""
        slots, there = self._stored(number, places)
        gone = slots[there]
        if len(gone):
            masks = self.table.values(THERE)
            masks[gone] &= ~(1 << number)
            self.table.touch(gone)
            self._cleared.append(gone)

    def _stored(self, number: int, places: Integers | None) -> tuple[Integers, Mask]:
        slots = self._found() if places is None else self._found()[places]
        there = slots >= 0
        if there.any():
            masks: Any = self.table.get(THERE, slots)
            there &= (masks & (1 << number)) != 0
        return slots, there

    def _found(self) -> Integers:
        if self._slots is None:
            keys = self.keys
            assert keys is not None
            if self._state.buckets(KEYS):
                self._slots = self.table.find(keys.hashes(), keys.columns())
            else:
                self._slots = np.full(len(keys), -1, np.int64)
        return self._slots

    def _insert(self, places: Integers) -> None:
        keys = self.keys
        assert keys is not None
        self._found()[places], _ = self.table.upsert(keys.hashes(places), keys.columns(places))

    def _sweep(self) -> None:
        """Keys without any value leave the table."""
        cleared, self._cleared = [part for part in self._cleared if len(part)], []
        if cleared:
            slots = distinct(np.concatenate(cleared))
            there: Any = self.table.get(THERE, slots)
            self.table.remove(slots[there == 0])


class ValueColumn:
    """What a function on columns sees of a value; it outlives epochs, and each gives it other tables.

    Places are `ctx.keys`, or an array of numbers of keys as in `ctx.slots`, or a mask as long as `ctx.keys`.
    """

    __slots__ = ("_column", "_kept", "_number", "_numpy", "_spec", "_uid")

    def __init__(self, spec: StateSpec, uid: str) -> None:
        self._spec = spec
        self._uid = uid
        self._column = column_of(spec)
        self._numpy = numpy_type(spec.type)
        self._kept: KeptColumns | None = None
        self._number = 0

    def serve(self, kept: KeptColumns) -> None:
        """From now on it is a view of this."""
        self._kept = kept
        self._number = kept.numbers[self._spec.name]

    def get(self, places: Any, default: Any = None) -> Any:
        """A value for each place, a copy: an Arrow array that is null where there is none.

        With a default there are no nulls, and numbers, truths and times come as a numpy array.
        """
        kept, chosen = self._at(places)
        slots, there = kept.find(self._number, chosen)
        if default is None:
            return self._with_nulls(kept, slots, there)
        if self._numpy is None:
            return filled(self._with_nulls(kept, slots, there), default)
        return self._numbers(kept, slots, there, default)

    def put(self, places: Any, values: Any) -> None:
        """Put values there: one for each place, or one for all. A null takes away. Of several for a key the last stays."""
        kept, chosen = self._at(places)
        assert kept.keys is not None
        many = len(kept.keys) if chosen is None else len(chosen)
        column, nulls = as_column(values, self._spec.type, many, self._wrong)
        if nulls is not None:
            chosen = np.arange(many) if chosen is None else chosen
            last = _last_of_each(chosen)
            chosen, column, nulls = chosen[last], column.take(plain(last)), nulls[last]
            kept.clear(self._number, chosen[nulls])
            chosen, column = chosen[~nulls], column.drop_null()
        if len(column):
            slots = kept.claim(self._number, chosen)
            kept.table.put(self._column, slots, column)

    def clear(self, places: Any) -> None:
        """Take values away."""
        kept, chosen = self._at(places)
        kept.clear(self._number, chosen)

    def _at(self, places: Any) -> tuple[KeptColumns, Integers | None]:
        kept = self._kept
        if kept is None or kept.keys is None:
            raise UserCodeError(
                f"The code of step '{self._uid}' used the state '{self._spec.name}' outside of process_batch and on_timers,"
                " where there are no keys."
            )
        return kept, as_places(places, kept.keys, self._uid)

    def _with_nulls(self, kept: KeptColumns, slots: Integers, there: Mask) -> pa.Array:
        kind = self._spec.type
        if not there.any():
            return pa.nulls(len(slots), kind)
        if self._numpy is not None:
            numbers: Any = kept.table.get(self._column, slots)
            return to_arrow(numbers, kind, ~there)
        found = kept.table.arrow(self._column, slots[there])
        places = np.cumsum(there) - 1
        return found.take(plain(places, ~there))

    def _numbers(
        self, kept: KeptColumns, slots: Integers, there: Mask, default: Any
    ) -> npt.NDArray[Any]:
        first = as_column(default, self._spec.type, 1, self._wrong)[0][0]
        if not there.any():
            return shown_as(np.full(len(slots), first), self._numpy)
        numbers: Any = kept.table.get(self._column, slots)
        if not there.all():
            numbers[~there] = first
        return shown_as(numbers, self._numpy)

    def _wrong(self, what: str) -> UserCodeError:
        return UserCodeError(
            f"The state '{self._spec.name}' of step '{self._uid}' does not take this: {what}."
        )


def _last_of_each(places: Integers) -> Integers:
    """For each place, where it is named last."""
    _, backwards = np.unique(places[::-1], return_index=True)
    return np.asarray(len(places) - 1 - backwards, np.int64)
