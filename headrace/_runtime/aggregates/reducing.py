"""`reduce`: one row from all rows of a key, made by a user's function of two rows.

The accumulator is a row, kept as a struct of the input's columns. The function runs before the shuffle on the
rows of a fold in order of arrival, and behind it on two accumulators. It may return a row, a dict or a dataclass;
what it is given is always a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots, valid_mask
from headrace._runtime.columns import row_objects, values
from headrace._runtime.results import build_batch, fields_of
from headrace._runtime.state import ValueSpec
from headrace._runtime.usercode import calling, place
from headrace.errors import UserCodeError
from headrace.schema import row_class

__all__ = ["Reduce"]


class Reduce(Fold):
    """One row a key; null where there was none."""

    traces: ClassVar[bool] = True

    def __init__(
        self, name: str, reducer: Callable[[Any, Any], Any], schema: pa.Schema, uid: str
    ) -> None:
        self._reducer = reducer
        self._schema = schema
        self._uid = uid
        self._make = row_class(schema)
        self._row = f"{name}.row"
        kind = pa.struct(list(schema))
        self.reads = None
        self.columns = (ValueSpec(self._row, kind, None),)
        self.parts = (pa.field(self._row, kind),)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """The rows of each group, in order."""
        return (Request(flush.places, "list"),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """Reduce the rows of each group."""
        names = self._schema.names
        batch = pa.RecordBatch.from_arrays([flush.columns[name] for name in names], names=names)
        rows = row_objects(batch)
        return (self._structs([self._reduced(flush, rows, group) for group in values(folded[0])]),)

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Reduce with the rows that are there already."""
        (part,) = parts
        valid = valid_mask(part)
        if valid is not None:
            slots, part = slots[valid], part.drop_null()
        old = into.get(self._row, slots)
        if old.null_count < len(old):
            pairs = zip(values(old), values(part), strict=True)
            part = self._structs([b if a is None else self._one(a, b) for a, b in pairs])
        into.put(self._row, slots, part)

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The rows."""
        return (self.result(source, slots),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The rows, as structs."""
        return source.get(self._row, slots)

    def _reduced(self, flush: Flush, rows: Sequence[Any], places: Sequence[int]) -> Any:
        reducer, make = self._reducer, self._make
        whole = rows[places[0]]
        for at in places[1:]:
            try:
                whole = reducer(whole, rows[at])
            except BaseException:
                with calling(self._uid, *flush.origin(at)):
                    raise
            if type(whole) is not make:
                whole = self._as_row(whole, place(*flush.origin(at)))
        return whole

    def _one(self, a: Any, b: Any) -> Any:
        with calling(self._uid):
            whole = self._reducer(a, b)
        return whole if type(whole) is self._make else self._as_row(whole, "")

    def _as_row(self, result: Any, where: str) -> Any:
        def wrong(_: int, what: str) -> UserCodeError:
            return self._wrong(what, where)

        return self._make._make(fields_of(result, self._schema, 0, wrong))

    def _structs(self, rows: Sequence[Any]) -> pa.Array:
        batch = build_batch(rows, self._schema, lambda _, what: self._wrong(what))
        return batch.to_struct_array()

    def _wrong(self, what: str, where: str = "") -> UserCodeError:
        at = f" at {where}" if where else ""
        return UserCodeError(f"Step '{self._uid}', the function of reduce{at}: {what}.")
