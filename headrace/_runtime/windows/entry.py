"""What every window needs of its rows: timestamps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace._graph.nodes import WindowStep
from headrace._runtime.rows import Rows
from headrace.errors import EngineError

__all__ = ["timestamps_of"]


def timestamps_of(rows: Rows, node: WindowStep) -> npt.NDArray[np.int64]:
    """The timestamps; the builder has seen to it that there are any."""
    if rows.timestamps is None:
        raise EngineError(f"Rows without timestamps reached the window step '{node.uid}'.")
    return rows.timestamps
