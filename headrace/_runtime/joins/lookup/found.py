"""What was found for the distinct keys of a batch: rows of the table, and where those of each key stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Found", "Integers"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    """Of each key the range of its rows; and the keys that could not be looked up, with cause and traceback."""

    rows: pa.RecordBatch
    starts: Integers
    counts: Integers
    failed: Mapping[int, tuple[str, str | None]] = field(default_factory=dict)
