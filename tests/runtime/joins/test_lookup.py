"""Look-up joins of one batch: what is asked for, and what comes of it."""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace._graph.nodes import ERRORS, MAIN
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Surroundings
from headrace._runtime.rows import Rows
from headrace.lookups import Cache, FileTable, LookupFunction
from tests.runtime.joins.lookup_steps import (
    Customer,
    Customers,
    column,
    orders,
    outputs,
    step,
)


class TestCalls:
    def test_each_distinct_key_of_a_batch_is_asked_for_once(self) -> None:
        table = Customers(batch_size=2)
        found = outputs(step(table), orders(7, 8, 7, None, 9, 8, 7))[MAIN]
        assert column(found, "name") == ["c7", "c8", "c7", None, "c9", "c8", "c7"]
        assert table.calls == [[7, 8], [9]]

    def test_what_is_kept_is_not_asked_for_again_and_that_there_is_no_row_is_kept(self) -> None:
        table = Customers(cache=Cache(size=10))
        operator = step(table)
        outputs(operator, orders(7, 500))
        assert column(outputs(operator, orders(500, 8, 7))[MAIN], "name") == [None, "c8", "c7"]
        assert table.calls == [[7, 500], [8]]

    def test_plain_functions_are_called_in_this_thread_one_call_after_the_other(self) -> None:
        calls: list[list[int]] = []

        def find(keys: list[int]) -> dict[int, Customer]:
            calls.append(keys)
            return {key: Customer(f"c{key}", 1) for key in keys if key % 2}

        found = outputs(step(find), orders(*range(2500), 1))[MAIN]
        assert [len(keys) for keys in calls] == [1000, 1000, 500]
        assert column(found, "name")[:4] == [None, "c1", None, "c3"]
        assert column(found, "name")[-1] == "c1"

    def test_coroutine_functions_are_awaited(self) -> None:
        async def find(keys: list[int]) -> dict[int, Customer | None]:
            await asyncio.sleep(0)
            return {key: None if key == 3 else Customer(f"c{key}", 1) for key in keys}

        assert column(outputs(step(find), orders(3, 4))[MAIN], "name") == [None, "c4"]

    def test_nobody_is_asked_if_all_keys_are_null(self) -> None:
        def find(keys: list[int]) -> dict[int, Customer]:
            raise AssertionError

        assert column(outputs(step(find), orders(None, None))[MAIN], "level") == [None, None]

    def test_several_columns_make_a_tuple_and_equal_floats_one_key(self) -> None:
        asked: list[Any] = []

        def find(keys: list[Any]) -> dict[Any, int]:
            asked.extend(keys)
            return {key: place for place, key in enumerate(keys)}

        schema = pa.schema({"x": pa.float64(), "y": pa.string()})
        batch = pa.RecordBatch.from_pydict(
            {"x": [0.0, math.nan, -0.0, -math.nan, 0.0], "y": ["", "", "", "", "a"]}, schema=schema
        )
        found = outputs(step(find, schema, ["x", "y"]), Rows(batch, None))[MAIN]
        assert column(found, "value") == [0, 1, 0, 1, 2]
        assert [key[1] for key in asked] == ["", "", "a"]
        assert str(column(found, "x")) == "[0.0, nan, -0.0, nan, 0.0]", "rows stay as they are"

    def test_nan_is_kept_like_any_key(self) -> None:
        calls = []

        class Places(LookupFunction[float, int]):
            cache = Cache()

            async def fetch(self, keys: Sequence[float]) -> dict[float, int]:
                calls.append(keys)
                return dict.fromkeys(keys, 1)

        schema = pa.schema({"x": pa.float64()})
        operator = step(Places(), schema, "x")
        for _ in range(2):
            batch = pa.RecordBatch.from_pydict({"x": [math.nan, 0.0]}, schema=schema)
            assert column(outputs(operator, Rows(batch, None))[MAIN], "value") == [1, 1]
        assert len(calls) == 1


class TestRows:
    def test_order_time_and_origin_stay(self) -> None:
        found = outputs(step(Customers(), how="inner"), orders(500, 7, 600, 8))
        assert found.keys() == {MAIN}
        assert column(found[MAIN], "id") == [1, 3]
        assert found[MAIN].timestamps.tolist() == [10, 30]
        assert found[MAIN].origin.offsets.tolist() == [101, 103]

    def test_rows_without_a_partner_are_counted_in_an_inner_join(self) -> None:
        operator = step(Customers(), how="inner")
        outputs(operator, orders(500, 7, 600, None))
        assert (operator.left_out(), operator.left_out()) == (2, 0)

    def test_null_keys_of_an_inner_join_are_dead_letters(self) -> None:
        found = outputs(step(Customers(), how="inner"), orders(7, None))
        assert column(found[ERRORS], "cause") == ["null key 'customer'"]
        assert column(found[ERRORS], "offset") == [101]
        assert len(found[MAIN]) == 1

    def test_null_keys_of_a_left_join_come_out_and_are_counted(self) -> None:
        operator, metrics = step(Customers()), Metrics("it")
        operator.enter(Surroundings(0, 0, 0, metrics))
        assert column(outputs(operator, orders(None, 7, None))[MAIN], "level") == [None, 1, None]
        assert metrics.counter("null_keys").value == 2

    def test_a_batch_without_rows_gives_none(self) -> None:
        assert outputs(step(Customers()), orders()) == {}

    def test_all_rows_of_a_key_in_a_file_come_in_their_order(self, tmp_path: Path) -> None:
        table = pa.table({"id": [7, 8, 7, None], "city": ["Oslo", "Rome", "Turin", "Nowhere"]})
        pq.write_table(table, tmp_path / "cities.parquet")
        cities = FileTable(tmp_path / "cities.parquet", key="id", columns=["city"])
        found = outputs(step(cities), orders(9, 7, None, 8, 7))[MAIN]
        assert column(found, "city") == [None, "Oslo", "Turin", None, "Rome", "Oslo", "Turin"]
        assert column(found, "id") == [0, 1, 1, 2, 3, 4, 4]
        assert found.timestamps.tolist() == [0, 10, 10, 20, 30, 40, 40]
        assert found.origin.offsets.tolist() == [100, 101, 101, 102, 103, 104, 104]

    def test_a_great_many_pairs_come_in_portions(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"id": [7] * 1000, "n": range(1000)}), tmp_path / "many.parquet")
        operator = step(FileTable(tmp_path / "many.parquet", key="id", columns=["n"]))
        found = [rows for _, rows in operator.process(orders(*[7] * 600))]
        assert [len(rows) for rows in found] == [262_000, 262_000, 76_000]
        numbers = [number for rows in found for number in column(rows, "n")]
        assert numbers == list(range(1000)) * 600
