from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import errors
from headrace._graph import nodes
from headrace._graph.changes import carries_changes
from headrace._graph.join_nodes import LookupJoin
from headrace._plan.laws import laws_of
from headrace.lookups import FileTable, LookupFunction
from headrace.lookups.awaited import AwaitedLookup


@dataclass
class Item:
    title: str
    price: float


def items(keys) -> dict[int, Item]:
    return {}


async def items_async(keys) -> Mapping[int, Item | None]:
    return {}


class Asked:
    def __call__(self, keys) -> dict[int, Item]:
        return {}


class Items(LookupFunction):
    async def fetch(self, keys) -> dict[int, Item]:
        return {}


class Declared(LookupFunction):
    schema = Item

    def lookup(self, keys) -> Any:
        return {}


@pytest.fixture
def table(tmp_path):
    columns = {"auction": [1, 2], "title": ["a", "b"], "price": [1.5, 2.5]}
    pq.write_table(pa.table(columns), tmp_path / "items.parquet")
    return tmp_path / "items.parquet"


def node_of(stream):
    return stream._graph.nodes[stream._port.node]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cache", 100, r"Declared.cache is 100; it takes an hr.lookups.Cache"),
        ("batch_size", 0, "Declared.batch_size is 0; it takes a whole number"),
        ("concurrency", "4", "Declared.concurrency is '4'"),
    ],
)
def test_settings_of_a_look_up_are_checked_when_the_job_is_built(bids, name, value, text):
    function = Declared()
    setattr(function, name, value)
    with pytest.raises(errors.BuildError, match=text):
        bids.join_lookup(function, on="auction")


def test_a_suffix_is_a_text(bids):
    with pytest.raises(errors.BuildError, match="suffix=5 must be a text"):
        bids.join_lookup(items, on="auction", suffix=5)


class TestColumns:
    @pytest.mark.parametrize(
        "table", [items, items_async, Asked(), partial(items), Items(), Declared()]
    )
    def test_rows_say_their_columns(self, bids, table):
        joined = bids.join_lookup(table, on="auction")
        assert joined.schema.names == [*bids.schema.names, "title", "price_right"]
        assert joined.schema.types[-2:] == [pa.string(), pa.float64()]

    def test_schema_comes_first(self, bids):
        assert bids.join_lookup(items, on="auction", schema={"x": int}).schema.names[-1] == "x"
        assert bids.join_lookup(Items(), on="auction", schema={"x": int}).schema.names[-1] == "x"

    def test_a_single_value_is_the_column_value(self, bids):
        def rate(keys) -> dict[str, float]:
            return {}

        assert bids.join_lookup(rate, on="channel").schema.field("value").type == pa.float64()

    @pytest.mark.parametrize("returned", [dict, dict[str, Any], dict[str, dict], Any, None])
    def test_what_does_not_say_them_is_refused_with_what_to_do(self, bids, returned):
        def rows(keys):
            return {}

        rows.__annotations__["return"] = returned
        with pytest.raises(errors.BuildError, match=r"rows that 'rows' returns: pass schema=Row"):
            bids.join_lookup(rows, on="auction")

    def test_a_key_of_the_same_name_stands_once(self, bids):
        schema = {"auction": int, "title": str}
        joined = bids.join_lookup(items, on="auction", schema=schema)
        assert joined.schema.names == [*bids.schema.names, "title"]

    @pytest.mark.parametrize("key", ["title", ("title",)])
    def test_a_look_up_may_say_what_its_key_is_called(self, bids, key):
        class Titled(Declared):
            key_columns = key

        joined = bids.join_lookup(Titled(), on="price", schema={"title": str, "price": float})
        assert joined.schema.names == [*bids.schema.names, "title", "price_right"]
        joined = bids.join_lookup(Declared(), on="price", schema={"title": str, "price": float})
        assert joined.schema.names == [*bids.schema.names, "title"]

    def test_one_of_another_name_stands_beside_ours(self, bids, table):
        joined = bids.join_lookup(FileTable(table, key="auction"), on="price")
        assert joined.schema.names[-3:] == ["auction_right", "title", "price_right"]

    def test_columns_of_a_file_are_read_from_it_or_declared(self, bids, table, tmp_path):
        joined = bids.join_lookup(FileTable(table, key="auction"), on="auction", suffix="_x")
        assert joined.schema.names[-2:] == ["title", "price_x"]
        few = FileTable(table, key="auction", columns=["title"])
        assert bids.join_lookup(few, on="auction").schema.names[-1] == "title"
        absent = tmp_path / "later.csv"
        schema = {"auction": int, "level": int}
        for later in (
            bids.join_lookup(FileTable(absent, key="auction", schema=schema), on="auction"),
            bids.join_lookup(FileTable(absent, key="auction"), on="auction", schema=schema),
        ):
            assert later.schema.names[-1] == "level"

    def test_what_is_not_there_for_every_row_may_be_null(self, bids):
        schema = pa.schema([pa.field("title", pa.string(), nullable=False)])
        assert bids.join_lookup(items, on="auction", schema=schema).schema.field("title").nullable


class TestChecks:
    @pytest.mark.parametrize("wrong", [5, "items.csv", Items, Item, None])
    def test_what_is_no_table_is_refused(self, bids, wrong):
        with pytest.raises(errors.BuildError, match=r"join_lookup takes an hr.lookups.Lookup"):
            bids.join_lookup(wrong, on="auction", schema=Item)

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"on": None}, r"needs the columns of the key: on="),
            ({"on": "acution"}, "did you mean 'auction'"),
            ({"on": "tags"}, "cannot be a key"),
            ({"how": "full"}, "choose 'left', 'inner'"),
            ({"on_error": "ignore"}, "on_error="),
            ({"schema": {}}, "has no columns"),
            ({"schema": {"__x": int}}, "belong to the engine"),
        ],
    )
    def test_options_are_checked(self, bids, options, text):
        with pytest.raises(errors.BuildError, match=text):
            bids.join_lookup(items, **{"on": "auction", **options})

    def test_keys_of_a_file_must_be_there_and_of_the_same_type(self, bids, table):
        with pytest.raises(errors.BuildError, match=r"key= names the column 'id'.*it has auction"):
            bids.join_lookup(FileTable(table, key="id"), on="auction")
        with pytest.raises(errors.BuildError, match="columns= names the column 'id'"):
            bids.join_lookup(FileTable(table, key="auction", columns=["id"]), on="auction")
        with pytest.raises(errors.SchemaError, match=r"\(channel: string\) and \(auction: int64\)"):
            bids.join_lookup(FileTable(table, key="auction"), on="channel")
        with pytest.raises(errors.BuildError, match=r"has 2 columns, .* has 1: auction"):
            bids.join_lookup(FileTable(table, key="auction"), on=["auction", "price"])

    def test_a_function_takes_one_list_of_keys(self, bids):
        with pytest.raises(errors.BuildError, match="with one argument, a list of keys"):
            bids.join_lookup(lambda some, more: {}, on="auction", schema=Item)  # noqa: ARG005


class TestStep:
    def test_what_is_not_said(self, bids):
        node = node_of(bids.join_lookup(items, on="auction"))
        assert isinstance(node, LookupJoin)
        assert (node.how, node.on_error, node.keys) == ("left", "fail", ("auction",))
        assert node.table is items
        assert isinstance(node_of(bids.join_lookup(items_async, on="price")).table, AwaitedLookup)

    def test_streams_with_keys_need_not_say_them(self, bids):
        keyed = bids.key_by("auction", "channel")
        assert node_of(keyed.join_lookup(items)).keys == ("auction", "channel")

    def test_errors_are_dead_letters_and_nothing_is_late(self, bids):
        joined = bids.join_lookup(items, on="auction", uid="it")
        assert joined.errors.schema == nodes.ERRORS_SCHEMA
        with pytest.raises(errors.BuildError, match="no late rows"):
            _ = joined.late_left

    def test_laws(self, env, bids, sink, table):
        bids.join_lookup(items, on="auction", uid="one").sink_to(sink)
        files = FileTable(table, key="auction")
        bids.join_lookup(files, on="auction", uid="many").sink_to(sink)
        assert [laws_of(env.plan())[uid] for uid in ("one", "many")] == ["one", "many"]

    def test_it_is_explained(self, env, bids, sink, table):
        rows = bids.join_lookup(FileTable(table, key="auction"), on="auction", uid="files")
        rows.join_lookup(items, on="auction", how="inner", suffix="_x", uid="asked").sink_to(sink)
        text = env.explain()
        assert f"left join with FileTable('{table}', key=['auction']) by auction" in text
        assert "inner join with items by auction  <- files" in text

    def test_sources_need_not_make_columns_that_nobody_takes(self, env, bids, sink):
        asked = []
        source = env.graph.nodes[0].source
        source.narrowed = lambda columns, **_: asked.append(columns) or source
        joined = bids.join_lookup(items, on="auction", uid="it")
        joined.select("title", "price", "price_right").sink_to(sink)
        env.plan()
        assert asked == [["auction", "price", "date_time"]]
        joined.errors.sink_to(sink)
        env.plan()
        assert asked[1] == bids.schema.names

    def test_changes_stay_changes(self, env, source):
        class Changing(source):
            carries_changes = True

        rows = Changing(pa.schema({"id": pa.int64(), "change": pa.string()}))
        joined = env.from_source(rows, uid="s").join_lookup(items, on="id")
        assert carries_changes(env.graph.nodes, joined._port)
        assert joined.schema.names[:2] == ["id", "change"]
