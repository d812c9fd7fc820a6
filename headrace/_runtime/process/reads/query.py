"""The state of one key as its function would see it, out of chunk logs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import KeyedProcess
from headrace._runtime.columns import values as python_values
from headrace._runtime.plain_keys import plain_key
from headrace._runtime.process.layout import Layout
from headrace._runtime.process.reads.tables import ALL_GROUPS, Place, state_table
from headrace._runtime.process.states.shapes import attacher
from headrace._runtime.process.touched import key_objects
from headrace._runtime.state import ChunkStore
from headrace.errors import BuildError
from headrace.keys import hash_keys, key_groups
from headrace.state import StateSpec

__all__ = ["Query"]


class Query:
    """One state of one key. State that belongs to no key is asked for without one."""

    def __init__(self, node: KeyedProcess, spec: StateSpec, place: Place, key: Any) -> None:
        self._spec = spec
        self._place = place
        self._key = _columns(node, key) if place.keys else []

    @property
    def groups(self) -> range:
        """The key group that must be read, if it is one."""
        if not self._key:
            return ALL_GROUPS
        group = int(key_groups(hash_keys(self._key))[0])
        return range(group, group + 1)

    def answer(self, logs: Sequence[ChunkStore]) -> Any:
        """A value or None, a list, or a dict; of an aggregation its result."""
        rows = state_table(self._place, logs, self.groups)
        if self._key:
            rows = rows.filter(pa.array(self._mine(rows)))
        stored = python_values(rows.columns[-1].combine_chunks())
        attach = attacher(self._spec.annotation, self._spec.type, self._spec.codec)
        found = stored if attach is None else [attach(value) for value in stored]
        if self._spec.kind in ("map", "broadcast"):
            return dict(zip(self._map_keys(rows), found, strict=True))
        if self._place.inner is not None:
            return found
        if found and self._spec.kind == "aggregating":
            return self._spec.function.get_result(found[0])
        return found[0] if found else None

    def _mine(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Which rows are of this key: by its hash, and then exactly."""
        columns = [column.combine_chunks() for column in rows.columns[: len(self._key)]]
        mine: npt.NDArray[np.bool_] = hash_keys(columns) == hash_keys(self._key)[0]
        places = np.flatnonzero(mine)
        (key,) = key_objects(self._key)
        found = key_objects([column.take(pa.array(places)) for column in columns])
        # A NaN is not equal to itself, but its text is.
        mine[places] = [other == key or repr(other) == repr(key) for other in found]
        return mine

    def _map_keys(self, rows: pa.Table) -> list[Any]:
        spec = self._spec
        assert spec.key_type is not None
        stored = python_values(rows.columns[-2].combine_chunks())
        attach = attacher(spec.key_annotation, spec.key_type, spec.key_codec)
        return stored if attach is None else [attach(value) for value in stored]


def _columns(node: KeyedProcess, key: Any) -> list[pa.Array]:
    schema = Layout(node).keys
    parts = key if isinstance(key, tuple) else (key,)
    try:
        pairs = zip(parts, schema, strict=True)
        return [plain_key(pa.array([part], field.type)) for part, field in pairs]
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        wanted = ", ".join(f"{field.name} ({field.type})" for field in schema)
        raise BuildError(
            f"The keys of step '{node.uid}' are {wanted}; {key!r} cannot be one"
            + (": give a tuple." if len(schema) > 1 else ".")
        ) from None
