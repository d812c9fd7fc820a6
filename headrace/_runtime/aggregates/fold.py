"""What an aggregate does at run time: fold rows to parts, merge parts into columns, read results.

    rows --requests, partial--> parts --merge--> columns of a pane --result--> values
                                  ^------------export------'

*Parts* are Arrow columns, one row a group; they cross the shuffle. *Columns* hold one slot a key: a table of
state, or a `Scratch` while the panes of a window are put together. Merging is associative, and the
initial values of the columns are its identity, so a new slot needs no special case.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.changes import CHANGE
from headrace._runtime.rows import Origin
from headrace._runtime.state import Table, TableSpec, ValueSpec

__all__ = ["Columns", "Flush", "Fold", "Request", "Slots", "valid_mask"]

Slots: TypeAlias = npt.NDArray[np.int64]

_WITHDRAWING = pa.array(["-U", "-D"])


class Columns(Protocol):
    """Named columns with one value a slot. A caller never names a slot twice in one call."""

    def values(self, column: str) -> npt.NDArray[Any]:
        """The whole of a fixed-width column, to be read and written in place."""

    def get(self, column: str, slots: Slots) -> Any:
        """The values at the slots: numpy for a fixed-width column, else Arrow."""

    def put(self, column: str, slots: Slots, values: Any) -> None:
        """Replace the values at the slots."""


class Request(NamedTuple):
    """One of Arrow's hash aggregates over a column of rows; without a column it counts rows."""

    column: pa.Array | None
    function: str
    options: pc.FunctionOptions | None = None


class Flush:
    """Rows about to be folded: whole columns in order of arrival, and their timestamps."""

    def __init__(
        self,
        columns: Mapping[str, pa.Array],
        timestamps: npt.NDArray[np.int64],
        origins: Sequence[tuple[int, Origin | None]] = (),
    ) -> None:
        self.columns = columns
        self.timestamps = timestamps
        self._origins = origins

    @cached_property
    def by_time(self) -> Slots:
        """The rows in order of time, among equals of arrival."""
        return np.argsort(self.timestamps, kind="stable")

    @cached_property
    def places(self) -> pa.Array:
        """The number of each row."""
        return pa.array(np.arange(len(self.timestamps)))

    @cached_property
    def weights(self) -> npt.NDArray[np.int8]:
        """-1 for rows that withdraw an earlier one, else 1."""
        withdraws = pc.is_in(self.columns[CHANGE], _WITHDRAWING).to_numpy(zero_copy_only=False)
        return np.where(withdraws, np.int8(-1), np.int8(1))

    def origin(self, row: int) -> tuple[Origin | None, int]:
        """Where a row came from, and its place among the offsets there."""
        for start, origin in reversed(self._origins):
            if row >= start:
                return origin, row - start
        return None, row


class Fold(ABC):
    """One aggregate of one step. Holds configuration only; all state is in `Columns`."""

    #: Columns of the rows that it reads; None means all of them.
    reads: tuple[str, ...] | None
    #: What it keeps for a key.
    columns: tuple[ValueSpec, ...]
    #: What crosses the shuffle.
    parts: tuple[pa.Field, ...]
    #: A second table, for aggregates whose state for one key is many rows.
    members: TableSpec | None = None
    #: Its last part is the place of each row in its fold, to be made an order of arrival by `arrive`.
    keeps_arrival: bool = False
    #: Whether `origin` of a flush is asked for.
    traces: ClassVar[bool] = False

    @abstractmethod
    def requests(self, flush: Flush) -> Sequence[Request]:
        """What Arrow is to compute for every group."""

    @abstractmethod
    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The parts, from what Arrow computed."""

    def admit(
        self, table: Table, hashes: npt.NDArray[np.uint64], keys: Sequence[pa.Array],
        parts: Sequence[pa.Array],
    ) -> Sequence[pa.Array]:  # fmt: skip
        """Put members into their table; what is left to merge. Only where `members` is not None."""
        raise NotImplementedError

    def arrive(
        self, parts: Sequence[pa.Array], numbers: npt.NDArray[np.int64]
    ) -> Sequence[pa.Array]:
        """The parts with `numbers` added to their places. Only where `keeps_arrival` is true."""
        raise NotImplementedError

    @abstractmethod
    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Fold parts into the columns; `parts[...][i]` belongs to `slots[i]`."""

    @abstractmethod
    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The parts that would make these slots: how one pane is merged into another."""

    @abstractmethod
    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """What the user sees for these slots."""


def valid_mask(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Where the array is not null; None if nowhere."""
    if not array.null_count:
        return None
    mask: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return mask
