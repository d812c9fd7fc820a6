"""The right rows of an as-of join, whichever way it looks: what they are, and how long they are of use.

Where the right carries changes, "-D" is a row that says that from here on there is none; so does a "-U", unless another row
takes its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import AsOfJoin
from headrace._runtime.joins.asof.partners import Partners
from headrace._runtime.joins.kinds import DELETE, kinds_of, without_replaced
from headrace._runtime.joins.sides import Side
from headrace._runtime.state import ShardState
from headrace._runtime.unfolded import join_batches
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["Rights", "Stretches", "ends", "right_side", "settled", "shown_columns"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: More slices are more tables to look a key up in; fewer hold more rows that are of no use any more.
_SLICES = 4
_LEAST_SLICE_US = 1_000_000


class Rights(ABC):
    """The right rows of one shard."""

    @property
    @abstractmethod
    def are_waiting(self) -> bool:
        """Whether any of them wait in the order of their arrival."""

    @abstractmethod
    def add(self, arrived: Sequence[pa.RecordBatch]) -> None:
        """Take in rows that are behind the watermark."""

    @abstractmethod
    def meet(
        self, left: pa.RecordBatch | None, arrived: Sequence[pa.RecordBatch], watermark: int
    ) -> Partners | None:
        """Take in rows from before the tick; the partners of left rows that are due, None if there are none.

        What no left row that is not due can reach is forgotten.
        """


@dataclass(frozen=True)
class Stretches:
    """Slices of time: a row is of use until the watermark is `reach_us` behind it."""

    reach_us: int

    @property
    def size_us(self) -> int:
        """The length of a slice."""
        return max(self.reach_us // _SLICES, _LEAST_SLICE_US)

    def of(self, times: Integers) -> Integers:
        """The slice of each time."""
        return times // self.size_us

    def span(self, number: int) -> tuple[int, int]:
        """The first and the last microsecond of a slice."""
        return number * self.size_us, (number + 1) * self.size_us - 1

    def useless_before(self, watermark: int) -> int:
        """Rows at or before this instant are of no use any more."""
        if watermark in (NO_WATERMARK, END_OF_TIME):
            return watermark
        return watermark - self.reach_us

    def drop(self, state: ShardState, name: str, watermark: int) -> None:
        """Forget the slices of a table that are of no use any more."""
        numbers = state.buckets(name)
        last = self.useless_before(watermark)
        horizon = last if watermark == END_OF_TIME else (last + 1) // self.size_us
        # A horizon that moves over nothing would be one more write an epoch.
        if numbers and numbers[0] < horizon:
            state.drop_before(name, horizon)


def right_side(node: AsOfJoin) -> Side:
    """The layout of right rows."""
    return Side.of(node, 1, changing=node.versions_end)


def shown_columns(node: AsOfJoin) -> tuple[str, ...]:
    """The columns of right rows that a result shows; the left has the keys that they share."""
    firsts = [column.origins[0] for column in node.columns]
    return tuple(name for side, name in firsts if side == 1)


def settled(arrived: Sequence[pa.RecordBatch], side: Side) -> list[pa.RecordBatch]:
    """Rows of a phase that carry changes, without those that are replaced."""
    if not arrived:
        return []
    batch = without_replaced(join_batches(arrived), side)
    return [batch] if batch.num_rows else []


def ends(batch: pa.RecordBatch) -> Mask:
    """Which of the rows end their key."""
    found: Mask = kinds_of(batch) == DELETE
    return found
