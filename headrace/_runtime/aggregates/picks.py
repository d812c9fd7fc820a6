"""`first`, `last`, `min_by`, `max_by`: the value of one row, chosen by an order; also `min` and `max` of text.

Rows are ranked once per flush by a stable sort, so choosing the row of a group is Arrow's minimum over
integers whatever the types. Between parts the order itself decides; among equals the part merged first wins,
but for `last` the one merged last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots, valid_mask
from headrace._runtime.aggregates.words import from_words, has_words, to_words
from headrace._runtime.state import ValueSpec

__all__ = ["Choice", "Pick"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which row is chosen: by time (`by` is None) or by a column, the least or the greatest."""

    by: str | None = None
    greatest: bool = False
    #: Among equals the last one in, not the first.
    latest: bool = False
    #: Parts may be merged in another order than they arrived in, so that is kept.
    by_arrival: bool = False


class Pick(Fold):
    """For a key: the order of the row chosen so far, its value, and whether there is one."""

    def __init__(self, name: str, column: str, schema: pa.Schema, choice: Choice) -> None:
        self._column = column
        self._choice = choice
        self._kind = schema.field(column).type
        self._order_kind = pa.int64() if choice.by is None else schema.field(choice.by).type
        self._has, self._order, self._value = (f"{name}.{p}" for p in ("has", "order", "value"))
        self._arrival = f"{name}.arrival"
        order = _kept(self._order, self._order_kind)
        value = _kept(self._value, self._kind)
        self.reads = (column,) if choice.by in (None, column) else (column, str(choice.by))
        # The extreme of a column is its own order: kept once.
        self._is_own_order = choice.by == column
        self.keeps_arrival = choice.by_arrival and not self._is_own_order
        kept = [order] if self._is_own_order else [order, value]
        if self.keeps_arrival:
            kept.append(ValueSpec(self._arrival, pa.int64(), 0))
        self.columns = (ValueSpec(self._has, pa.bool_(), False), *kept)
        self.parts = tuple(pa.field(spec.name, spec.type) for spec in kept)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """The best rank among rows that have both value and order."""
        usable = flush.columns[self._column].is_valid()
        if self._choice.by is not None:
            usable = pc.and_(usable, flush.columns[self._choice.by].is_valid())
        ranks = np.empty(len(usable), np.int64)
        ranks[self._ranked(flush)] = np.arange(len(usable))
        unusable = ~usable.to_numpy(zero_copy_only=False)
        return (Request(pa.array(ranks, mask=unusable), "max" if self._choice.latest else "min"),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """Order and value of the chosen rows; null where no row was usable."""
        rows = pa.array(self._ranked(flush)).take(folded[0])
        if self._choice.by is None:
            order = pa.array(flush.timestamps).take(rows)
        else:
            order = _stored(_normal(flush.columns[self._choice.by].take(rows)))
        if self._is_own_order:
            return (order,)
        value = _stored(flush.columns[self._column].take(rows))
        return (order, value, rows)[: len(self.parts)]

    def arrive(
        self, parts: Sequence[pa.Array], numbers: npt.NDArray[np.int64]
    ) -> Sequence[pa.Array]:
        """The chosen rows' places, made an order of arrival."""
        return (*parts[:-1], pc.add(parts[-1], pa.array(numbers)))

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Replace the slots against which a part wins."""
        wins = self._wins(into, slots, parts)
        if not wins.all():
            slots, parts = slots[wins], [part.filter(pa.array(wins)) for part in parts]
        for spec, part in zip(self.columns[1:], parts, strict=True):
            into.put(spec.name, slots, part.to_numpy() if spec.type == pa.int64() else part)
        into.values(self._has)[slots] = True

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """Order and value, null where there is none."""
        has = source.get(self._has, slots)
        return tuple(_masked(source.get(spec.name, slots), has) for spec in self.columns[1:])

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The values, null where there is none."""
        values = source.get(self._order if self._is_own_order else self._value, slots)
        has = source.get(self._has, slots)
        return (
            from_words(values, self._kind, has) if has_words(self._kind) else _masked(values, has)
        )

    def _ranked(self, flush: Flush) -> Slots:
        """The rows from best to worst, or for `latest` from worst to best."""
        if self._choice.by is None:
            return flush.by_time
        column = _normal(flush.columns[self._choice.by])
        if not has_words(column.type):
            direction = "descending" if self._choice.greatest else "ascending"
            order: Slots = (
                pc.array_sort_indices(column, order=direction).to_numpy().astype(np.int64)
            )
            return order
        words = to_words(column)
        return np.argsort(~words if self._choice.greatest else words, kind="stable")

    def _wins(
        self, into: Columns, slots: Slots, parts: Sequence[pa.Array]
    ) -> npt.NDArray[np.bool_]:
        order = parts[0]
        old = into.get(self._order, slots)
        if has_words(self._order_kind):
            new = pc.fill_null(order, 0).to_numpy()
            if self._choice.latest:
                better = new >= old
            else:
                better = new > old if self._choice.greatest else new < old
            same = new == old
        else:
            compare = pc.greater if self._choice.greatest else pc.less
            better = _mask(compare(order, old))
            same = _mask(pc.equal(order, old))
        if self.keeps_arrival:
            arrived = pc.fill_null(parts[-1], 0).to_numpy()
            better = better | (same & (arrived < into.get(self._arrival, slots)))
        wins: npt.NDArray[np.bool_] = better | ~into.get(self._has, slots)
        valid = valid_mask(order)
        return wins if valid is None else wins & valid


def _kept(name: str, kind: pa.DataType) -> ValueSpec:
    return ValueSpec(name, pa.int64(), 0) if has_words(kind) else ValueSpec(name, kind, None)


def _stored(values: pa.Array) -> pa.Array:
    if not has_words(values.type):
        return values
    valid = valid_mask(values)
    return pa.array(to_words(values), mask=None if valid is None else ~valid)


def _normal(order: pa.Array) -> pa.Array:
    # -0.0 and 0.0 are equal, so neither may come before the other.
    return pc.add(order, pa.scalar(0, order.type)) if pa.types.is_floating(order.type) else order


def _mask(truth: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = pc.fill_null(truth, False).to_numpy(zero_copy_only=False)
    return mask


def _masked(values: object, has: npt.NDArray[np.bool_]) -> pa.Array:
    if isinstance(values, np.ndarray):
        return pa.array(values, mask=None if has.all() else ~has)
    return values if has.all() else pc.if_else(pa.array(has), values, None)
