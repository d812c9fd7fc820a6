from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypedDict

import pyarrow as pa
import pytest

from headrace import errors
from headrace._graph import nodes
from headrace.environment import Environment
from headrace.expressions import col, lit


@dataclass
class Bid:
    auction: int
    price: int


@dataclass
class WrongBid:
    auction: str


class Priced(TypedDict):
    price: float


def to_bid(row) -> Bid:
    return Bid(row.auction, row.price)


def names(stream):
    return stream.schema.names


def node_of(stream):
    return stream._graph.nodes[stream._port.node]


class TestMap:
    def test_columns_come_from_the_annotation(self, bids):
        assert bids.map(to_bid).schema == pa.schema(
            [("auction", pa.int64()), ("price", pa.int64())]
        )

    def test_columns_come_from_schema(self, bids):
        priced = bids.map(lambda row: {"price": row.price * 1.0}, schema=Priced)
        assert priced.schema == pa.schema([("price", pa.float64())])

    def test_a_single_value_becomes_the_column_value(self, bids):
        def text(row) -> str:
            return row.channel

        assert bids.map(text).schema == pa.schema([("value", pa.string())])

    def test_without_annotation_or_schema_the_error_says_how(self, bids):
        with pytest.raises(errors.BuildError, match=r"annotate the lambda .*schema=Result"):
            bids.map(lambda row: row.price)

    @pytest.mark.parametrize("function", [7, "price", None, col("price")])
    def test_what_cannot_be_called_is_refused(self, bids, function):
        with pytest.raises(errors.BuildError, match="map takes a function of one row"):
            bids.map(function, schema=Bid)

    def test_a_function_of_two_arguments_is_refused(self, bids):
        with pytest.raises(errors.BuildError, match=r"takes \(a, b\)"):
            bids.map(lambda a, b: a + b, schema=Bid)

    def test_a_generator_is_sent_to_flat_map(self, bids):
        def several(row):
            yield row

        with pytest.raises(errors.BuildError, match="flat_map"):
            bids.map(several, schema=Bid)

    def test_a_coroutine_is_refused(self, bids):
        async def later(row) -> Bid:
            return row

        with pytest.raises(errors.BuildError, match="coroutine"):
            bids.map(later)

    def test_a_field_that_the_function_reads_must_exist(self, bids):
        with pytest.raises(errors.SchemaError, match=r"did you mean 'price'.*channel \(string\)"):
            bids.map(lambda row: {"price": row.prize}, schema=Priced)

    def test_a_parameter_type_must_fit_the_stream(self, bids):
        def wrong(bid: WrongBid) -> Bid:
            return Bid(0, 0)

        with pytest.raises(
            errors.SchemaError, match="'auction' is string, but the stream has int64"
        ):
            bids.map(wrong)

    def test_partials_methods_and_callable_objects_are_functions(self, bids):
        def scaled(factor: int, row: Any) -> Bid:
            return Bid(row.auction, row.price * factor)

        class Scale:
            def __call__(self, row) -> Bid:
                return Bid(row.auction, row.price)

            def times(self, row) -> Bid:
                return Bid(row.auction, row.price)

        for function in (partial(scaled, 2), Scale(), Scale().times):
            assert names(bids.map(function)) == ["auction", "price"]


class TestFlatMap:
    def test_columns_come_from_the_element(self, bids):
        def split(row) -> Iterator[Bid]:
            yield Bid(row.auction, row.price)

        assert names(bids.flat_map(split)) == ["auction", "price"]

    def test_a_function_of_one_row_is_refused(self, bids):
        with pytest.raises(errors.SchemaError, match=r"Iterator\[Bid\]"):
            bids.flat_map(to_bid)

    def test_without_annotation_the_error_says_how(self, bids):
        with pytest.raises(errors.BuildError, match=r"-> Iterator\[Result\]"):
            bids.flat_map(lambda row: [row])


class TestFilter:
    def test_functions_and_expressions_keep_the_columns(self, bids):
        by_function = bids.filter(lambda row: row.price > 1)
        by_expression = bids.filter(col("price") > 1)
        assert by_function.schema == by_expression.schema == bids.schema
        assert isinstance(node_of(by_function), nodes.FilterRows)
        assert isinstance(node_of(by_expression), nodes.FilterBy)

    def test_an_expression_that_is_no_condition_is_refused(self, bids):
        with pytest.raises(errors.SchemaError, match=r"true or false, but .* is int64"):
            bids.filter(col("price") * 2)

    def test_an_annotated_function_must_return_bool(self, bids):
        def price(row) -> int:
            return row.price

        with pytest.raises(errors.SchemaError, match="'price' is int64"):
            bids.filter(price)

    def test_an_unknown_field_is_refused_with_the_fields(self, bids):
        with pytest.raises(errors.SchemaError, match=r"'prise'.*price \(int64\)"):
            bids.filter(col("prise") > 1)

    def test_a_naive_datetime_is_refused(self, bids):
        with pytest.raises(errors.BuildError, match="time zone"):
            bids.filter(col("date_time") > datetime(2025, 1, 1))


class TestMapBatches:
    def test_an_empty_batch_tells_the_columns(self, bids):
        assert names(bids.map_batches(lambda batch: batch.select(["price"]))) == ["price"]

    def test_with_a_schema_the_function_does_not_run(self, bids):
        def fails(batch):
            raise AssertionError

        assert names(bids.map_batches(fails, Priced)) == ["price"]

    def test_a_failure_on_the_empty_batch_shows_the_fields(self, bids):
        with pytest.raises(errors.BuildError, match=r"KeyError.*auction \(int64\).*schema="):
            bids.map_batches(lambda batch: batch.select(["prise"]))

    def test_another_result_than_a_batch_is_refused(self, bids):
        with pytest.raises(
            errors.BuildError, match=r"pyarrow\.RecordBatch, but the lambda returned list"
        ):
            bids.map_batches(lambda batch: batch.columns)


class TestSelect:
    def test_names_columns_and_expressions(self, bids):
        chosen = bids.select("auction", col("price"), usd=col("price") * 0.9, way="channel")
        assert chosen.schema == pa.schema(
            [("auction", "int64"), ("price", "int64"), ("usd", "float64"), ("way", "string")]
        )

    def test_an_unknown_field_is_refused_with_the_fields(self, bids):
        with pytest.raises(errors.SchemaError, match=r"select: .*'prise'.*did you mean 'price'"):
            bids.select("prise")
        with pytest.raises(errors.SchemaError, match="'prise'"):
            bids.select(usd=col("prise") * 2)

    def test_an_expression_needs_a_name(self, bids):
        with pytest.raises(errors.BuildError, match=r"select\(name="):
            bids.select(col("price") * 2)

    def test_a_plain_value_is_pointed_to_lit(self, bids):
        with pytest.raises(errors.BuildError, match=r"hr\.lit\(1\)"):
            bids.select(one=1)
        assert bids.select(one=lit(1)).schema.field("one").type == pa.int64()

    def test_no_columns_and_repeated_columns_are_refused(self, bids):
        with pytest.raises(errors.BuildError, match="needs columns"):
            bids.select()
        with pytest.raises(errors.SchemaError, match="more than one column named 'price'"):
            bids.select("price", price=col("price") * 2)


class TestUnion:
    def test_the_node_takes_all_inputs_in_order(self, bids):
        dear, cheap = bids.filter(col("price") > 9), bids.filter(col("price") < 2)
        assert [port.node for port in node_of(bids.union(dear, cheap)).inputs] == [0, 1, 2]

    @pytest.mark.parametrize(
        ("other", "difference"),
        [
            (["auction"], "'price' is only in the first"),
            (["auction", "price", "channel"], "'channel' is only in the second"),
            (["price", "auction"], r"the order is \(auction, price\) and \(price, auction\)"),
        ],
    )
    def test_differing_columns_are_named(self, bids, other, difference):
        with pytest.raises(errors.SchemaError, match=difference):
            bids.select("auction", "price").union(bids.select(*other))

    def test_differing_types_are_named(self, bids):
        text = bids.select(price=col("price").cast(str))
        with pytest.raises(errors.SchemaError, match="'price' is int64 in the first and string in"):
            bids.select("price").union(text)

    def test_streams_of_another_environment_are_refused(self, bids, source):
        stranger = Environment("other").from_source(source(bids.schema))
        with pytest.raises(errors.BuildError, match="another Environment"):
            bids.union(stranger)

    def test_nothing_and_no_stream_are_refused(self, bids):
        with pytest.raises(errors.BuildError, match="at least one"):
            bids.union()
        with pytest.raises(errors.BuildError, match="takes streams"):
            bids.union([bids])


class TestKeyBy:
    def test_columns_are_the_key(self, bids):
        assert bids.key_by("auction", "channel").keys == ("auction", "channel")

    def test_a_function_adds_the_column_key(self, bids):
        def bucket(row) -> int:
            return row.price % 10

        keyed = bids.key_by(bucket)
        assert keyed.keys == ("key",)
        assert keyed.schema == bids.schema.append(pa.field("key", pa.int64()))

    def test_a_lambda_needs_the_type_of_the_key(self, bids):
        with pytest.raises(errors.BuildError, match="key_type=int"):
            bids.key_by(lambda row: row.price % 10)
        assert (
            bids.key_by(lambda row: row.channel, key_type=str).schema.field("key").type == "string"
        )

    def test_an_unknown_field_is_refused_with_the_fields(self, bids):
        with pytest.raises(errors.SchemaError, match=r"key_by: .*'auktion'.*'auction'"):
            bids.key_by("auktion")
        with pytest.raises(errors.SchemaError, match="no field 'auktion'"):
            bids.key_by(lambda row: row.auktion, key_type=int)

    def test_a_type_that_cannot_be_a_key_is_refused(self, bids):
        with pytest.raises(errors.SchemaError, match=r"'tags' is list.*cannot be a key"):
            bids.key_by("tags")

    @pytest.mark.parametrize(
        ("keys", "problem"),
        [
            ((), "needs columns"),
            (("auction", "auction"), "twice"),
            (("auction", len), "one function alone"),
            ((col("price") % 10,), "name it first"),
            ((7,), "function of one row"),
        ],
    )
    def test_wrong_keys_are_refused(self, bids, keys, problem):
        with pytest.raises(errors.BuildError, match=problem):
            bids.key_by(*keys)

    def test_a_function_cannot_hide_a_column(self, bids):
        with pytest.raises(errors.SchemaError, match="adds the column 'key'"):
            bids.select(key="price").key_by(lambda row: row.key, key_type=int)


class TestSinkTo:
    def test_what_is_no_sink_is_refused(self, bids):
        with pytest.raises(errors.BuildError, match="sink_to takes a sink"):
            bids.sink_to("out/")

    def test_the_sink_may_refuse_the_schema(self, bids, sink):
        def refuse(schema):
            raise errors.BuildError(f"no {schema.names[0]}")

        sink.validate = refuse
        with pytest.raises(errors.BuildError, match="no auction"):
            bids.sink_to(sink)


class TestUids:
    def test_a_duplicate_names_both_places(self, bids, sink):
        with pytest.raises(
            errors.BuildError, match=r"'bids' at test_stream\.py:\d+ .* at conftest\.py:\d+"
        ):
            bids.sink_to(sink, uid="bids")

    @pytest.mark.parametrize("uid", ["", "a/b", "..", "a b", 7, "x" * 101])
    def test_a_uid_is_safe_in_names_of_files(self, bids, sink, uid):
        with pytest.raises(errors.BuildError, match="letters, digits"):
            bids.sink_to(sink, uid=uid)

    def test_a_failed_call_leaves_the_graph_as_it_was(self, env, bids, sink):
        with pytest.raises(errors.BuildError):
            bids.sink_to(sink, uid="bids")
        assert [node.uid for node in env.graph.nodes] == ["bids"]


def test_source_errors_have_the_columns_of_dead_letters(bids):
    assert bids.errors.schema == nodes.ERRORS_SCHEMA


def test_repr_names_the_step_and_its_fields(bids):
    assert repr(bids.select("price")) == "Stream('select-1': price (int64))"
