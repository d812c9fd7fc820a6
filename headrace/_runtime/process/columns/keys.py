"""The distinct keys of one call on columns, and what stands for some of them: places among them.

`Keys` is the `ctx.keys` of a function. State handles and timers take it for all keys, or an array of places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.plain_keys import number_keys
from headrace._runtime.state.columns import plain
from headrace.errors import UserCodeError
from headrace.keys import hash_keys

__all__ = ["Keys", "as_places"]

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Keys:
    """All keys that the rows or timers of a call have, each once, in the order in which they first come."""

    def __init__(
        self, schema: pa.Schema, slots: Integers, columns: list[pa.Array], hashes: Hashes
    ) -> None:
        self._schema = schema
        self._columns = columns
        self._hashes = hashes
        # They were given to the function, and what it did to them must not reach the state of other keys.
        slots.setflags(write=False)
        #: For each row the place of its key.
        self.slots = slots

    @classmethod
    def of_rows(cls, schema: pa.Schema, columns: Sequence[pa.Array], hashes: Hashes) -> Keys:
        """The keys of rows with these key columns and hashes."""
        slots, firsts = number_keys(columns)
        places = plain(firsts)
        return cls(schema, slots, [column.take(places) for column in columns], hashes[firsts])

    @classmethod
    def of_distinct(cls, schema: pa.Schema, columns: list[pa.Array], slots: Integers) -> Keys:
        """These keys, all different, of rows that have those at `slots`."""
        return cls(schema, slots, columns, hash_keys(columns))

    def __len__(self) -> int:
        return len(self._hashes)

    def to_arrow(self) -> pa.RecordBatch:
        """The columns of the key, a row for each key."""
        return pa.RecordBatch.from_arrays(self._columns, schema=self._schema)

    def hashes(self, places: Integers | None = None) -> Hashes:
        """The hashes of these keys; of all without places."""
        return self._hashes if places is None else self._hashes[places]

    def columns(self, places: Integers | None = None) -> list[pa.Array]:
        """The key columns of these keys; of all without places."""
        if places is None:
            return self._columns
        chosen = plain(places)
        return [column.take(chosen) for column in self._columns]


def as_places(given: Any, keys: Keys, uid: str) -> Integers | None:
    """Places as a function gave them, checked; None stands for all keys."""
    if given is keys:
        return None
    is_of_rows = given is keys.slots
    if is_of_rows:
        return keys.slots
    if isinstance(given, Keys):
        raise UserCodeError(
            f"The code of step '{uid}' used the ctx.keys of an earlier call; those of a call end with it."
        )
    places: npt.NDArray[Any] = np.asarray(given)
    if places.dtype == np.bool_ and places.shape == (len(keys),):
        chosen: Integers = np.flatnonzero(places)
        return chosen
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        raise UserCodeError(
            f"The code of step '{uid}' gave {_shown(given)} for places of keys; give ctx.keys, or an array of whole"
            " numbers such as ctx.slots."
        )
    if places.size and not 0 <= int(places.min()) <= int(places.max()) < len(keys):
        wrong = int(places.max()) if int(places.min()) >= 0 else int(places.min())
        raise UserCodeError(
            f"The code of step '{uid}' named the place {wrong}, but this call has {len(keys)} keys, from 0 on."
        )
    return places.astype(np.int64, copy=False)


def _shown(given: Any) -> str:
    if isinstance(given, np.ndarray | pa.Array):
        kind = given.dtype if isinstance(given, np.ndarray) else given.type
        return f"an array of {kind} with the shape {np.shape(given)}"
    return repr(given)
