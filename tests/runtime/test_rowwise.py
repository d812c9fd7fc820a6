"""Stateless steps on rows, batches and columns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._graph import nodes
from headrace._runtime import rowwise
from headrace._runtime.rows import Origin, Rows
from headrace.errors import UserCodeError
from headrace.expressions import col

IN = pa.schema([("auction", pa.int64()), ("price", pa.int64())])
OUT = pa.schema([("auction", pa.int64()), ("euros", pa.float64())])


@dataclass
class Converted:
    auction: int
    euros: float


def bids(prices: list[int | None]) -> Rows:
    count = len(prices)
    batch = pa.RecordBatch.from_pydict({"auction": range(count), "price": prices}, schema=IN)
    offsets = np.arange(100, 100 + count)
    return Rows(batch, np.arange(count) * 10, Origin("bids", "0", offsets))


def step(kind: str, function: Any, schema: pa.Schema = OUT) -> Any:
    node = getattr(nodes, kind)(id=1, uid="it", inputs=(), schema=schema, function=function)
    return getattr(rowwise, kind)(node)


def only(operator: Any, rows: Rows) -> Rows:
    [(output, result)] = operator.process(rows)
    assert output == nodes.MAIN
    assert isinstance(result, Rows)
    return result


@pytest.mark.parametrize(
    "function",
    [
        lambda row: Converted(row.auction, row.price / 100),
        lambda row: {"euros": row.price / 100, "auction": row.auction},
        lambda row: (
            Converted(row.auction, row.price / 100)
            if row.auction % 2
            else {"auction": row.auction, "euros": row.price / 100}
        ),
    ],
)
def test_map_takes_dataclasses_dicts_and_both(function: Callable[[Any], Any]) -> None:
    result = only(step("MapRows", function), bids([100, 250]))
    assert result.batch.to_pydict() == {"auction": [0, 1], "euros": [1.0, 2.5]}
    assert result.timestamps is not None
    assert result.timestamps.tolist() == [0, 10]
    assert result.origin is not None


def test_map_may_return_the_row_itself() -> None:
    rows = bids([1, 2])
    assert only(step("MapRows", lambda row: row, IN), rows).batch.equals(rows.batch)
    wider = pa.schema([("price", pa.int64())])
    assert only(step("MapRows", lambda row: row, wider), rows).batch.to_pydict() == {
        "price": [1, 2]
    }


def test_map_to_a_plain_value_fills_the_column_value() -> None:
    schema = pa.schema([("value", pa.string())])
    result = only(step("MapRows", lambda row: str(row.price), schema), bids([7, None]))
    assert result.batch.to_pydict() == {"value": ["7", "None"]}


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (lambda _: {"auction": 1}, ["'euros' (double) is missing", "declared fields"]),
        (lambda _: {"auction": 1, "euros": 1.0, "cent": 2}, ["'cent'", "euros: double"]),
        (lambda _: {"auction": "x", "euros": 1.0}, ["'auction' must be int64", "'x' (str)"]),
        (lambda _: Converted(1, "much"), ["'euros' must be double", "'much' (str)"]),  # type: ignore[arg-type]
        (lambda row: row, ["'euros' (double) is missing", "Row(auction=0"]),
        (lambda _: None, ["returned None"]),
        (lambda _: 3, ["returned 3 (int)"]),
    ],
)
def test_result_that_does_not_fit_names_field_and_value(
    function: Callable[[Any], Any], parts: list[str]
) -> None:
    with pytest.raises(UserCodeError) as caught:
        list(step("MapRows", function).process(bids([1, 2])))
    for part in [*parts, "step 'it'", "offset 100"]:
        assert part in str(caught.value)


def test_failure_points_at_the_row_that_failed() -> None:
    with pytest.raises(UserCodeError, match="offset 102") as caught:
        list(
            step("MapRows", lambda row: {"auction": 1, "euros": 1 / row.price}).process(
                bids([1, 2, 0])
            )
        )
    assert "ZeroDivisionError" in str(caught.value)


def test_field_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UserCodeError, match=r"'prize'.*'price'"):
        list(step("MapRows", lambda row: row.prize).process(bids([1])))


def test_mistyped_value_points_at_its_row() -> None:
    function = lambda row: {"auction": row.auction, "euros": "x" if row.auction == 1 else 1.0}
    with pytest.raises(UserCodeError, match="offset 101"):
        list(step("MapRows", function).process(bids([1, 2, 3])))


def test_flat_map_rows_inherit_time_and_origin() -> None:
    def pieces(row: Any) -> Iterator[Converted]:
        for _ in range(row.price):
            yield Converted(row.auction, 0.5)

    result = only(step("FlatMapRows", pieces), bids([2, 0, 1]))
    assert result.batch.column("auction").to_pylist() == [0, 0, 2]
    assert result.timestamps is not None
    assert result.timestamps.tolist() == [0, 0, 20]
    assert result.origin is not None
    assert result.origin.offsets.tolist() == [100, 100, 102]


def test_flat_map_of_nothing_sends_nothing() -> None:
    assert list(step("FlatMapRows", lambda _: []).process(bids([1, 2]))) == []


def test_flat_map_failure_inside_a_generator_points_at_the_row() -> None:
    def broken(row: Any) -> Iterator[Converted]:
        yield Converted(1, 1.0)
        raise ValueError(f"price {row.price}")

    with pytest.raises(UserCodeError, match="price 5") as caught:
        list(step("FlatMapRows", broken).process(bids([5])))
    assert "offset 100" in str(caught.value)


@pytest.mark.parametrize("made", ["text", {"auction": 1, "euros": 1.0}, None])
def test_flat_map_refuses_what_is_not_several_rows(made: Any) -> None:
    with pytest.raises(UserCodeError, match="TypeError"):
        list(step("FlatMapRows", lambda _: made).process(bids([5])))


def test_filter_keeps_rows_with_their_time() -> None:
    result = only(step("FilterRows", lambda row: row.price > 1, IN), bids([1, 2, 3]))
    assert result.batch.column("price").to_pylist() == [2, 3]
    assert result.timestamps is not None
    assert result.timestamps.tolist() == [10, 20]


def test_filter_without_an_answer_is_an_error_not_a_loss() -> None:
    with pytest.raises(UserCodeError, match="returned None"):
        list(step("FilterRows", lambda _: None, IN).process(bids([1])))


def test_key_function_adds_a_column() -> None:
    schema = IN.append(pa.field("key", pa.string()))
    result = only(step("KeyByFunction", lambda row: f"k{row.price}", schema), bids([1, 2]))
    assert result.batch.schema == schema
    assert result.batch.column("key").to_pylist() == ["k1", "k2"]


def test_map_batches_of_equal_length_keeps_time() -> None:
    result = only(
        step("MapBatches", lambda batch: batch.select(["price", "auction"]), IN), bids([1, 2])
    )
    assert result.batch.schema.names == ["auction", "price"]
    assert result.timestamps is not None


def test_map_batches_of_other_length_loses_time() -> None:
    result = only(step("MapBatches", lambda batch: batch.slice(1), IN), bids([1, 2]))
    assert result.timestamps is None
    assert result.origin is None


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda _: None, "must return a RecordBatch"),
        (lambda batch: batch.select(["price"]), "'auction' (int64) is missing"),
        (lambda batch: batch.append_column("x", batch.column(0)), "'x' is not among"),
        (
            lambda batch: batch.set_column(1, "price", batch.column(1).cast(pa.int32())),
            "'price' must be int64, but it is int32",
        ),
    ],
)
def test_batch_that_does_not_fit_is_named(function: Callable[[Any], Any], part: str) -> None:
    with pytest.raises(UserCodeError) as caught:
        list(step("MapBatches", function, IN).process(bids([1])))
    assert part in str(caught.value)


def test_select_computes_columns() -> None:
    schema = pa.schema([("double", pa.int64())])
    columns = (("double", col("price") * 2),)
    node = nodes.Select(id=1, uid="it", inputs=(), schema=schema, columns=columns)
    assert only(rowwise.Select(node), bids([1, None])).batch.to_pydict() == {"double": [2, None]}


def test_condition_that_is_null_drops_the_row() -> None:
    node = nodes.FilterBy(id=1, uid="it", inputs=(), schema=IN, condition=col("price") > 1)
    result = only(rowwise.FilterBy(node), bids([1, None, 3]))
    assert result.batch.column("price").to_pylist() == [3]


def test_a_filter_leaves_columns_that_nobody_looks_at_empty() -> None:
    node = nodes.FilterBy(
        id=1, uid="it", inputs=(), schema=IN, condition=col("price") > 1, taken=frozenset()
    )
    given = bids([1, None, 3])
    result = only(rowwise.FilterBy(node), given)
    assert result.batch.schema == given.batch.schema
    assert result.batch.column("price").to_pylist() == [None]
    assert result.timestamps is not None
    assert result.timestamps.tolist() == [20]


def test_union_gives_all_inputs_one_schema() -> None:
    marked = IN.with_metadata({"from": "left"})
    node = nodes.Union(id=1, uid="it", inputs=(), schema=IN)
    rows = bids([1])
    result = only(rowwise.Union(node), rows.with_batch(rows.batch.cast(marked)))
    assert result.batch.schema.equals(IN, check_metadata=True)
