"""Joins with a broadcast table, and the rows of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import headrace as hr
from headrace._graph.join_nodes import BroadcastJoin
from headrace.connectors.memory import MemorySource
from headrace.testing.epochs import SidedRow

ROWS = pa.schema([("country", pa.string()), ("zone", pa.float64()), ("n", pa.int64())])
TABLE = pa.schema([("country", pa.string()), ("zone", pa.float64()), ("name", pa.string())])
CHANGES = TABLE.append(pa.field("change", pa.string()))
KEYS = ["country", "zone"]


def broadcast_node(
    how: Any, *, changing: bool = False, schemas: Sequence[pa.Schema] | None = None, **keys: Any
) -> BroadcastJoin:
    """The step that users get when they build it so."""
    env = hr.Environment("table")
    rows, table = schemas or (ROWS, CHANGES if changing else TABLE)
    entries = MemorySource([], table)
    entries.carries_changes = changing
    small = env.from_source(entries, uid="table").broadcast()
    stream = env.from_source(MemorySource([], rows), uid="rows")
    stream.join(small, how=how, uid="named", **(keys or {"on": KEYS}))
    (node,) = [node for node in env.graph.nodes if isinstance(node, BroadcastJoin)]
    return node


def row(country: str | None, zone: float | None, n: int, at: int = 0) -> SidedRow:
    """A row, number n of its partition."""
    fields = {"country": country, "zone": _float(zone), "n": n}
    return SidedRow(at or n, fields, 0, ("rows", str(n % 2), n))


def entry(
    country: str | None, zone: float | None, name: str, offset: int, change: str | None = None
) -> SidedRow:
    """A row of the table, at a place of its source."""
    fields = {"country": country, "zone": _float(zone), "name": name}
    if change is not None:
        fields["change"] = change
    return SidedRow(1, fields, 1, ("table", str(offset % 2), offset))


def _float(zone: float | None) -> float | None:
    return None if zone is None else float(zone)
