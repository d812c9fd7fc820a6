"""`count_distinct`, exactly.

In windows that do not overlap every (key, value) is a row of a member table, and a key keeps only a count: an
epoch pays for the values that it brings, not for those that are there. Panes of overlapping windows are
shorter and must be united, so there a key keeps the list of its values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace._runtime.aggregates.lists import concat_lists, distinct_lists, lengths, owners
from headrace._runtime.plain_keys import plain_key, plain_key_type
from headrace._runtime.state import Table, TableSpec, ValueSpec
from headrace.keys import extend_hashes

__all__ = ["DistinctCount", "DistinctList"]

_VALID_ONLY = pc.CountOptions(mode="only_valid")


class _Distinct(Fold):
    def __init__(self, name: str, column: str, kind: pa.DataType) -> None:
        self._column = column
        self._item = plain_key_type(kind)
        self._values = f"{name}.values"
        self.reads = (column,)
        self.parts = (pa.field(self._values, pa.list_(self._item)),)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow finds the different values of a group."""
        return (Request(plain_key(flush.columns[self._column]), "distinct", _VALID_ONLY),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The lists as they are."""
        return (folded[0].cast(pa.list_(self._item)),)


class DistinctCount(_Distinct):
    """A count a key, and a table of members."""

    def __init__(self, name: str, column: str, kind: pa.DataType, keys: pa.Schema) -> None:
        super().__init__(name, column, kind)
        self._count = f"{name}.count"
        self.columns = (ValueSpec(self._count, pa.int64(), 0),)
        self.members = TableSpec(f"members.{name}", keys.append(pa.field(self._values, self._item)))

    def admit(
        self, table: Table, hashes: npt.NDArray[np.uint64], keys: Sequence[pa.Array],
        parts: Sequence[pa.Array],
    ) -> Sequence[pa.Array]:  # fmt: skip
        """How many of the values are new, for each row."""
        rows = owners(parts[0])
        values = parts[0].flatten()
        places = pa.array(rows)
        member_hashes = extend_hashes(hashes[rows], [values])
        _, is_new = table.upsert(member_hashes, [*(key.take(places) for key in keys), values])
        return (pa.array(np.bincount(rows[is_new], minlength=len(hashes))),)

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Add what `admit` counted."""
        into.values(self._count)[slots] += parts[0].to_numpy()

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """Counts of two panes cannot be merged; overlapping windows use `DistinctList`."""
        raise NotImplementedError

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The counts."""
        return pa.array(source.get(self._count, slots))


class DistinctList(_Distinct):
    """The list of its values a key."""

    def __init__(self, name: str, column: str, kind: pa.DataType) -> None:
        super().__init__(name, column, kind)
        self.columns = (ValueSpec(self._values, pa.list_(self._item), None),)

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Unite."""
        both = concat_lists(into.get(self._values, slots), parts[0])
        into.put(self._values, slots, distinct_lists(both))

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The lists."""
        return (source.get(self._values, slots),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """How long the lists are."""
        return pa.array(lengths(source.get(self._values, slots)))
