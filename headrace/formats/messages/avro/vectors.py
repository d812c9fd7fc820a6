"""Avro records without arrays and maps, read field by field for all messages at once.

Avro has no lengths of fields, so a cursor per message walks through them side by side: each step is a few numpy calls
over the whole batch. A cursor that leaves its message, or does not end where it ends, marks the message as bad; its
values are nonsense and the caller throws them away. Nothing here says why.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.formats.messages.avro.leaves import converted
from headrace.formats.messages.avro.resolution import Plan
from headrace.formats.messages.avro.rows import default_column
from headrace.formats.messages.avro.schema import AvroType
from headrace.formats.messages.packed import SLACK, Packed

__all__ = ["can_read", "malformed", "read"]

Numbers = npt.NDArray[np.int64]

_VECTORS = frozenset("null boolean int long float double bytes string enum fixed".split())
_FLOATS: dict[str, np.dtype[np.float32] | np.dtype[np.float64]] = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}


def can_read(kind: AvroType) -> bool:
    """Whether the type is made of nothing but fields that are there once."""
    if kind.kind == "record":
        return all(can_read(field.type) for field in kind.fields)
    return kind.kind in _VECTORS


def read(messages: Packed, plan: Plan) -> tuple[pa.StructArray, npt.NDArray[np.bool_]]:
    """The rows as one struct column, and which of them are bad. Text that is not UTF-8 raises `ArrowInvalid`."""
    cursors = _Cursors(messages)
    rows = cursors.value(plan.writer, plan, np.arange(len(messages), dtype=np.int64))
    return rows, cursors.finished()


def malformed(messages: Packed, kind: AvroType) -> npt.NDArray[np.bool_]:
    """Which messages are bad whatever their values are: the same ones that `read` finds, where it can be read."""
    cursors = _Cursors(messages)
    cursors.value(kind, None, np.arange(len(messages), dtype=np.int64))
    return cursors.finished()


class _Cursors:
    def __init__(self, messages: Packed) -> None:
        self._octets = messages.octets
        self._limit = len(messages.octets) - SLACK
        self._at = messages.starts.copy()
        self._ends = messages.ends
        self._bad = np.zeros(len(messages), dtype=np.bool_)

    def finished(self) -> npt.NDArray[np.bool_]:
        bad: npt.NDArray[np.bool_] = self._bad | (self._at != self._ends)
        return bad

    def value(self, kind: AvroType, plan: Plan | None, rows: Numbers) -> pa.Array | None:
        """What stands at the cursors of these rows; without a plan it is only passed over."""
        if kind.null_branch is None:
            return self._present(kind, plan, rows)
        branches = self._varints(rows)
        self._refuse(rows, (branches < 0) | (branches > 1))
        valid = branches != kind.null_branch
        if valid.all():
            return self._present(kind, plan, rows)
        found = self._present(kind, plan, rows[valid])
        if found is None:
            return None
        return found.take(pa.array(np.cumsum(valid) - 1, mask=~valid))

    def _present(self, kind: AvroType, plan: Plan | None, rows: Numbers) -> pa.Array | None:
        if kind.kind == "record":
            return self._record(kind, plan, rows)
        leaf = self._leaf(kind, rows, wanted=plan is not None)
        return None if plan is None else converted(leaf, kind, plan.target)

    def _record(self, kind: AvroType, plan: Plan | None, rows: Numbers) -> pa.Array | None:
        wanted = {child.source: child.plan for child in plan.children} if plan else {}
        found = {f.name: self.value(f.type, wanted.get(f.name), rows) for f in kind.fields}
        if plan is None:
            return None
        columns = [
            default_column(child, len(rows)) if child.source is None else found[child.source]
            for child in plan.children
        ]
        if not columns:
            return pa.array([{}] * len(rows), plan.target)
        return pa.StructArray.from_arrays(columns, fields=list(plan.target))

    def _leaf(self, kind: AvroType, rows: Numbers, *, wanted: bool) -> pa.Array:
        if kind.kind == "null":
            return pa.nulls(len(rows))
        if kind.kind == "boolean":
            octets = self._fixed(rows, 1)[:, 0]
            self._refuse(rows, octets > 1)
            return pa.array(octets == 1)
        if kind.kind in _FLOATS:
            size = _FLOATS[kind.kind]
            return pa.array(self._fixed(rows, size.itemsize).view(size)[:, 0])
        if kind.kind in ("int", "long"):
            return pa.array(self._varints(rows))
        if kind.kind == "enum":
            numbers = self._varints(rows)
            wrong = (numbers < 0) | (numbers >= len(kind.symbols))
            self._refuse(rows, wrong)
            return pa.array(kind.symbols, pa.string()).take(pa.array(np.where(wrong, 0, numbers)))
        sizes = np.full(len(rows), kind.size) if kind.kind == "fixed" else self._varints(rows)
        return self._slices(rows, sizes, wanted=wanted)

    def _fixed(self, rows: Numbers, size: int) -> npt.NDArray[np.uint8]:
        at = self._at[rows]
        self._at[rows] = at + size
        inside = np.minimum(at, self._limit)
        return np.ascontiguousarray(self._octets[inside[:, None] + np.arange(size)])

    def _varints(self, rows: Numbers) -> Numbers:
        at = self._at[rows]
        octets = self._octets[np.minimum(at, self._limit)]
        values = (octets & 0x7F).astype(np.uint64)
        at += 1
        going = np.flatnonzero(octets & 0x80)
        shift = 7
        while len(going):
            more = self._octets[np.minimum(at[going], self._limit)]
            values[going] |= (more & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[going] += 1
            going = going[(more & 0x80) != 0]
            shift += 7
            if shift > 63:
                self._bad[rows[going]] = True
                break
        self._at[rows] = at
        one = np.uint64(1)
        zigzag: Numbers = ((values >> one) ^ (np.uint64(0) - (values & one))).view(np.int64)
        return zigzag

    def _slices(self, rows: Numbers, sizes: Numbers, *, wanted: bool) -> pa.Array:
        starts = self._at[rows]
        wrong = (sizes < 0) | (sizes > self._ends[rows] - starts)
        self._refuse(rows, wrong)
        sizes = np.where(wrong, 0, sizes)
        self._at[rows] = starts + sizes
        if not wanted:
            return pa.nulls(len(rows))
        ends = np.cumsum(sizes)
        offsets = np.concatenate([[0], ends])
        picked = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(self._octets[picked])]
        return pa.Array.from_buffers(pa.large_binary(), len(rows), buffers)

    def _refuse(self, rows: Numbers, wrong: npt.NDArray[np.bool_]) -> None:
        if wrong.any():
            self._bad[rows[wrong]] = True
