"""Rows that cross the shuffle as they are."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace._graph.nodes import CountAggregate
from headrace._runtime import unfolded
from headrace._runtime.operator import HASH
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import TIMESTAMP, Unfolded, plain_columns
from headrace.keys import hash_keys
from headrace.testing.step_harness import timed_rows
from headrace.windows import Count
from tests.runtime.windows.cases import SCHEMA, row, step_node


def rows_of(keys: str) -> Rows:
    return timed_rows(SCHEMA, [(n, row(key, n)) for n, key in enumerate(keys)])


def holder(*names: str) -> Unfolded:
    node = step_node(CountAggregate, Count(3), {"rows": agg.count()})
    return Unfolded(node.keys, plain_columns(SCHEMA, names))


def test_columns_timestamps_and_hashes_are_sent() -> None:
    held = holder("key", "number")
    held.add(rows_of("ab"))
    held.add(rows_of("c"))
    (batch,) = held.take()
    assert batch.schema.names == ["key", "number", TIMESTAMP, HASH]
    assert batch.column(TIMESTAMP).to_pylist() == [0, 1, 0]
    assert batch.column(HASH).to_numpy().tolist() == hash_keys([batch.column("key")]).tolist()
    assert not held.take()


def test_rows_without_timestamps_are_sent_without() -> None:
    held = holder("key")
    held.add(Rows(rows_of("ab").batch, None))
    assert held.take()[0].column(TIMESTAMP).null_count == 2


def test_batches_are_joined_when_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfolded, "FOLD_ROWS", 4)
    held = holder("key")
    for _ in range(3):
        held.add(rows_of("abc"))
    assert [batch.num_rows for batch in held.take()] == [6, 3]


def test_dictionaries_become_plain() -> None:
    schema = pa.schema([("key", pa.dictionary(pa.int8(), pa.string()))])
    node = step_node(CountAggregate, Count(3), {"rows": agg.count()}, schema=schema)
    held = Unfolded(node.keys, plain_columns(schema, ["key"]))
    for keys in ("ab", "cb"):
        held.add(timed_rows(schema, [(0, {"key": key}) for key in keys]))
    (batch,) = held.take()
    assert batch.column("key").type == pa.string()
    assert batch.column("key").to_pylist() == ["a", "b", "c", "b"]


def test_heavy_keys_are_named_with_their_rows() -> None:
    held = holder("key")
    held.add(rows_of("aab" * 100 + "".join(chr(200 + n) for n in range(300))))
    held.take()
    named = [(json.loads(key)["key"], rows) for key, rows in held.heavy.items()]
    assert named == [("a", 200), ("b", 100)]
