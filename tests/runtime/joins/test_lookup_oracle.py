"""Look-up joins and all pairs of rows."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._graph.nodes import ERRORS, MAIN
from headrace._runtime.joins.lookup import LookupJoin, index
from headrace._runtime.joins.lookup.index import KeyIndex
from headrace._runtime.rows import Rows
from headrace.lookups import FileTable
from tests.examples import examples
from tests.oracle.joins.lookup import lookup_join, same_key
from tests.runtime.joins.lookup_steps import ORDERS, column, step

SOME = st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, -math.nan, math.inf])
TEXTS = st.sampled_from([None, "", "a", "b", "a\0", "aa"])
WHOLE = st.sampled_from([None, 0, 1, -1, 2**62, -(2**63)])


ROWS = st.lists(st.tuples(SOME, TEXTS, WHOLE), max_size=12)
KEYS = st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True)
SCHEMA = pa.schema({"x": pa.float64(), "y": pa.string(), "z": pa.int64(), "n": pa.int64()})


def numbered(rows: list[Any]) -> list[dict[str, Any]]:
    return [{**dict(zip("xyz", row, strict=True)), "n": n} for n, row in enumerate(rows)]


def joined(operator: LookupJoin, left: list[dict[str, Any]], name: str) -> tuple[list[Any], int]:
    """Pairs of numbers, and how many dead letters there are."""
    batch = pa.RecordBatch.from_pylist(left, schema=SCHEMA)
    found = list(operator.process(Rows(batch, None)))
    main = [made for output, made in found if output == MAIN]
    pairs = [p for made in main for p in zip(column(made, "n"), column(made, name), strict=True)]
    return pairs, sum(len(made) for output, made in found if output == ERRORS)


@given(ROWS, ROWS, KEYS, st.sampled_from(["left", "inner"]), st.booleans())
@examples(150)
def test_files_join_as_the_oracle_does(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Any],
    table: list[Any],
    on: list[str],
    how: Any,
    collide: bool,
) -> None:
    left, right = numbered(rows), numbered(table)
    path = tmp_path_factory.mktemp("oracle") / "table.parquet"
    pq.write_table(pa.Table.from_pylist(right, schema=SCHEMA), path)
    operator = step(FileTable(path, key=on, columns=["n"]), SCHEMA, on, how=how)
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            same = lambda keys: np.zeros(len(keys[0]), np.uint64)
            patch.setattr(index, "hash_keys", same)
            patch.setattr("headrace._runtime.plain_keys.hash_keys", same)
        found = joined(operator, left, "n_right")
    pairs, dead = lookup_join(left, right, [(name, name) for name in on], how)
    assert found == (pairs, len(dead))
    assert operator.left_out() == len(left) - len(dead) - len({place for place, _ in pairs})


@given(ROWS, ROWS, KEYS, st.sampled_from(["left", "inner"]))
def test_functions_join_as_the_oracle_does(
    rows: list[Any], table: list[Any], on: list[str], how: Any
) -> None:
    left, right = numbered(rows), numbered(table)
    asked: list[Any] = []

    def find(keys: list[Any]) -> dict[Any, int]:
        asked.extend(keys)
        parts = [(key, key if len(on) > 1 else (key,)) for key in keys]
        return {
            key: row["n"]
            for row in reversed(right)
            for key, part in parts
            if all(same_key(value, row[name]) for value, name in zip(part, on, strict=True))
        }

    found = joined(step(find, SCHEMA, on, how=how), left, "value")
    pairs, dead = lookup_join(left, right, [(name, name) for name in on], how)
    first = dict(reversed(pairs))
    assert found == (sorted(first.items()), len(dead))
    distinct = {
        str([row[name] or 0.0 for name in on])
        for row in left
        if all(row[name] is not None for name in on)
    }
    assert len(asked) == len(distinct)


def test_an_index_of_nothing_finds_nothing() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=ORDERS)
    found = KeyIndex.of(empty, ["customer"]).find([pa.array([1, 2])])
    assert found.counts.tolist() == [0, 0]
