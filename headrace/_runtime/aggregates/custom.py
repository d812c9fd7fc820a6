"""A user's `AggregateFunction`: `add` runs before the shuffle, `merge` behind it, on Python objects.

Accumulators are stored as Arrow values and rebuilt as the annotated class when they are read; each key's is
read and written once a batch. Whatever the user's code raises becomes a `UserCodeError` with the step's uid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace._runtime.aggregates.rebuild import rebuilder
from headrace._runtime.columns import row_objects, values
from headrace._runtime.results import build_column
from headrace._runtime.state import ValueSpec
from headrace._runtime.usercode import calling
from headrace.errors import UserCodeError
from headrace.functions import (
    AggregateFunction,
    accumulator_annotation,
    accumulator_type,
    result_type,
)

__all__ = ["Custom"]


class Custom(Fold):
    """One accumulator a key."""

    traces: ClassVar[bool] = True

    def __init__(self, name: str, function: AggregateFunction, uid: str) -> None:
        self._function = function
        self._uid = uid
        self._accumulator = f"{name}.accumulator"
        self._kind = accumulator_type(function)
        self._result_kind = result_type(function)
        self._rebuild = rebuilder(accumulator_annotation(function))
        self.reads = None
        # A fixed-width column cannot be null, and an accumulator may be None: a list of one holds any.
        self._stored = pa.list_(self._kind)
        self.columns = (ValueSpec(self._accumulator, self._stored, None),)
        self.parts = (pa.field(self._accumulator, self._stored),)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """The rows of each group, in order."""
        return (Request(flush.places, "list"),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """Run `add` on every row."""
        batch = pa.RecordBatch.from_arrays(list(flush.columns.values()), names=list(flush.columns))
        rows = row_objects(batch)
        return (self._box([self._added(flush, rows, places) for places in values(folded[0])]),)

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Run `merge` on the slots that have an accumulator already."""
        old = into.get(self._accumulator, slots)
        if old.null_count == len(old):
            into.put(self._accumulator, slots, parts[0])
            return
        with calling(self._uid):
            merged = [
                new
                if a is None
                else [self._function.merge(self._rebuild(a[0]), self._rebuild(new[0]))]
                for a, new in zip(values(old), values(parts[0]), strict=True)
            ]
        into.put(self._accumulator, slots, self._box([box[0] for box in merged]))

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The accumulators."""
        return (source.get(self._accumulator, slots),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """Run `get_result`."""
        get_result, rebuild = self._function.get_result, self._rebuild
        with calling(self._uid):
            boxes = values(source.get(self._accumulator, slots))
            results = [get_result(rebuild(box[0])) for box in boxes]
        return self._column("get_result", results, self._result_kind)

    def _added(self, flush: Flush, rows: Sequence[Any], places: Sequence[int]) -> Any:
        add = self._function.add
        with calling(self._uid):
            accumulator = self._function.create_accumulator()
        for place in places:
            try:
                accumulator = add(rows[place], accumulator)
            except BaseException:
                with calling(self._uid, *flush.origin(place)):
                    raise
        return accumulator

    def _box(self, accumulators: Sequence[Any]) -> pa.Array:
        items = self._column("the accumulator", accumulators, self._kind)
        offsets = pa.array(range(len(items) + 1), pa.int32())
        return pa.ListArray.from_arrays(offsets, items).cast(self._stored)

    def _column(self, what: str, objects: Sequence[Any], kind: pa.DataType) -> pa.Array:
        return build_column(objects, pa.field(what, kind), self._wrong)

    @property
    def _wrong(self) -> Callable[[int, str], UserCodeError]:
        name = type(self._function).__name__
        return lambda _, what: UserCodeError(f"Step '{self._uid}', {name}: {what}.")
