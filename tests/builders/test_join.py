"""`join`: what is refused where it is written, what it becomes, and which state it warns of."""

import warnings
from datetime import timedelta

import pyarrow as pa
import pytest

import headrace as hr
from headrace._graph.changes import carries_changes
from headrace._graph.join_nodes import Keep, RegularJoin
from headrace.errors import BuildError, SchemaError, UnboundedStateWarning
from headrace.joined import JoinResult

SALES = pa.schema([("item", pa.int64()), ("buyer", pa.string()), ("price", pa.int64())])
HOUR = timedelta(hours=1)
HOUR_US = 3_600_000_000


@pytest.fixture
def sales(env, source):
    return env.from_source(source(SALES), uid="sales")


@pytest.fixture
def edited(bids):
    """A stream that withdraws its rows."""
    window = hr.windows.Tumbling(timedelta(seconds=10))
    return bids.key_by("auction").window(window).retracting().aggregate(n=hr.count(), uid="counts")


def node_of(stream) -> RegularJoin:
    node = stream._graph.nodes[stream._port.node]
    assert isinstance(node, RegularJoin)
    return node


def test_columns_of_both_sides_and_shared_keys_once(bids):
    others = bids.select("auction", "price", seller="channel")
    joined = bids.select("auction", "price").join(others, on="auction", forever=True, uid="j")
    assert isinstance(joined, JoinResult)
    assert joined.schema.names == ["auction", "price", "price_right", "seller"]
    assert node_of(joined).where.startswith("test_join.py:")


@pytest.mark.parametrize(
    ("how", "nullable"),
    [("inner", ""), ("left", "b"), ("right", "a"), ("full", "ab"), ("semi", "")],
)
def test_columns_of_a_side_that_may_be_missing_may_be_null(env, source, how, nullable):
    def side(name):
        fields = [pa.field(column, pa.int64(), nullable=False) for column in ("id", name)]
        return env.from_source(source(pa.schema(fields)), uid=name)

    joined = side("a").join(side("b"), on="id", how=how, forever=True)
    assert [f.name for f in joined.schema if f.nullable and f.name != "change"] == list(nullable)


def test_keys_with_other_names_stand_twice(bids, sales):
    joined = bids.select("auction").join(
        sales, left_on="auction", right_on="item", forever=True, suffix="_of_sale"
    )
    assert joined.schema.names == ["auction", "item", "buyer", "price"]
    again = joined.join(sales, left_on=["auction"], right_on=["item"], suffix="_2", forever=True)
    assert again.schema.names == [
        "auction", "item", "buyer", "price", "item_2", "buyer_2", "price_2",
    ]  # fmt: skip


def test_keyed_streams_bring_their_keys(bids, sales):
    joined = bids.key_by("auction").join(sales.key_by("item"), forever=True)
    assert node_of(joined).keys == (("auction",), ("item",))


def test_semi_and_anti_have_the_columns_of_the_left(bids, sales):
    for how, change in (("semi", []), ("anti", ["change"])):
        joined = bids.join(sales, left_on="auction", right_on="item", how=how, forever=True)
        assert joined.schema.names == [*bids.schema.names, *change]
        assert node_of(joined).keeps == (None, Keep("first"))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_results_carry_changes_if_something_can_be_withdrawn(bids, sales, edited, how):
    keys = {"left_on": "auction", "right_on": "item", "how": how, "forever": True}
    plain, changed = bids.join(sales, **keys), edited.join(sales, **keys)
    assert carries_changes(plain._graph.nodes, plain._port) is (how not in ("inner", "semi"))
    assert carries_changes(changed._graph.nodes, changed._port)
    assert changed.schema.names[-1] == "change"
    assert changed.schema.names.count("change") == 1


def test_a_right_that_withdraws_is_kept_whole_by_a_semi_join(sales, edited):
    keys = {"left_on": "item", "right_on": "auction", "how": "semi"}
    assert node_of(sales.join(edited, **keys, forever=True)).keeps == (None, None)
    for_a_time = sales.join(sales, on="item", how="semi", ttl=[None, HOUR], forever=True)
    assert node_of(for_a_time).keeps == (None, None)


def test_times_to_live_are_one_for_all_or_one_each(bids, sales):
    keys = {"left_on": "auction", "right_on": "item"}
    assert node_of(bids.join(sales, **keys, ttl=HOUR)).ttls_us == (HOUR_US, HOUR_US)
    each = bids.join(sales, **keys, ttl=[HOUR, None], forever=True)
    assert node_of(each).ttls_us == (HOUR_US, None)
    with pytest.raises(BuildError, match=r"names 3 times for 2 streams: pass one for all, or one"):
        bids.join(sales, **keys, ttl=[HOUR, HOUR, None])
    with pytest.raises(BuildError, match="ttl"):
        bids.join(sales, **keys, ttl=timedelta(0))
    with pytest.raises(BuildError, match="ttl"):
        bids.join(sales, **keys, ttl=60)


def test_several_streams_join_in_one_step(bids, sales):
    joined = sales.join(sales, sales, on="item", how="left", forever=True)
    assert node_of(joined).keys == (("item",),) * 3
    assert joined.schema.names == [
        "item", "buyer", "price", "buyer_right", "price_right", "buyer_right2", "price_right2",
        "change",
    ]  # fmt: skip
    for how in ("right", "full", "semi", "anti"):
        with pytest.raises(
            BuildError, match=r'of 3 streams is how="inner" or how="left"; join two'
        ):
            sales.join(sales, sales, on="item", how=how)


def test_rows_that_run_out_are_not_missed_by_a_left_join_of_many(sales):
    for ttl in (HOUR, [None, HOUR, None], [HOUR, None, HOUR]):
        with pytest.raises(
            BuildError, match=r"Give a ttl to the first alone, ttl=\[timedelta\(...\), None, None\]"
        ):
            sales.join(sales, sales, on="item", how="left", ttl=ttl)
    first = sales.join(sales, sales, on="item", how="left", ttl=[HOUR, None, None], forever=True)
    assert node_of(first).ttls_us == (HOUR_US, None, None)
    assert node_of(sales.join(sales, sales, on="item", ttl=HOUR)).ttls_us == (HOUR_US,) * 3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "A join needs keys"),
        ({"on": "item", "left_on": "item"}, "not both"),
        ({"left_on": "item"}, "left_on= and right_on= together"),
        ({"left_on": ["item", "price"], "right_on": "item"}, "as many columns as each other"),
        ({"on": "itme"}, r"no field 'itme'.*'item'"),
        ({"on": "item", "how": "outer"}, r"how='outer': choose 'inner', 'left'"),
        ({"on": "item", "suffix": ""}, "two columns"),
    ],
)
def test_mistakes_are_told_where_they_are_made(sales, options, told):
    with pytest.raises((BuildError, SchemaError), match=f"(?s){told}"):
        sales.join(sales, **options)


def test_keys_need_equal_types_that_can_be_compared(bids, sales):
    with pytest.raises(
        SchemaError, match=r"same types, but they are \(auction: int64\) and \(buyer"
    ):
        bids.join(sales, left_on="auction", right_on="buyer")
    with pytest.raises(SchemaError, match="tags"):
        bids.join(bids, on="tags")


def test_only_streams_of_one_environment_are_joined(sales, source):
    with pytest.raises(BuildError, match="takes streams or keyed streams, not 'sales'"):
        sales.join("sales", on="item")
    other = hr.Environment("other").from_source(source(SALES), uid="elsewhere")
    with pytest.raises(BuildError, match="'elsewhere' belongs to another Environment"):
        sales.join(other, on="item")


def test_a_condition_is_true_or_false_of_pairs_and_for_inner_joins(sales):
    lower = hr.col("price") < hr.col("price_right")
    joined = sales.join(sales, on="item", where=lower, forever=True)
    assert node_of(joined).condition is lower
    with pytest.raises(BuildError, match=r'for inner joins: in a how="left" join'):
        sales.join(sales, on="item", how="left", where=lower)
    with pytest.raises(BuildError, match=r"takes an expression on the columns of the result"):
        sales.join(sales, on="item", where=lambda _: True)
    with pytest.raises(SchemaError, match="'cost'"):
        sales.join(sales, on="item", where=hr.col("cost") > 1)
    with pytest.raises(SchemaError, match=r"true or false, but col\(.price.\) is int64"):
        sales.join(sales, on="item", where=hr.col("price"))


def test_a_column_of_the_name_of_changes_is_in_the_way(sales):
    named = sales.select("item", change="buyer")
    with pytest.raises(BuildError, match="adds the column 'change' to its result"):
        named.join(sales, on="item", how="left")
    assert named.join(sales, on="item", forever=True).schema.names[1] == "change"


def test_there_are_no_late_rows(sales):
    joined = sales.join(sales, on="item", forever=True, uid="pairs")
    for late in ("late_left", "late_right"):
        with pytest.raises(BuildError, match="'pairs' has no late rows"):
            getattr(joined, late)
    assert "cause" in joined.errors.schema.names


def warned(make) -> str:
    """The one warning, which points at this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    (warning,) = caught
    assert warning.category is UnboundedStateWarning
    assert warning.filename == __file__
    return str(warning.message)


def test_rows_kept_for_ever_are_warned_of_by_name(bids, sales):
    keys = {"left_on": "auction", "right_on": "item"}
    told = warned(lambda: bids.join(sales, **keys, uid="pairs"))
    assert told.startswith("The join 'pairs' (test_join.py:")
    assert "keeps every row of 'bids' and 'sales' for ever" in told
    assert "ttl=timedelta(...)" in told
    assert "forever=True" in told
    told = warned(lambda: bids.join(sales, **keys, ttl=[HOUR, None]))
    assert "keeps every row of 'sales' for ever" in told
    told = warned(lambda: bids.join(sales, **keys, how="semi"))
    assert "keeps every row of 'bids' and a row for every key of 'sales' for ever" in told


def test_what_is_meant_or_ends_or_is_replaced_is_not_warned_of(bids, sales):
    keys = {"left_on": "auction", "right_on": "item"}
    last = sales.key_by("item").last(forever=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bids.join(sales, **keys, forever=True)
        bids.join(sales, **keys, ttl=HOUR)
        bids.join(last, **keys, ttl=[HOUR, None])
    told = warned(lambda: bids.join(last, **keys))
    assert "keeps every row of 'bids' for ever" in told


def test_what_runs_out_before_a_join_stays_in_it(bids, sales):
    last = sales.key_by("item").last(ttl=HOUR, uid="latest")
    told = warned(lambda: bids.join(last, left_on="auction", right_on="item", ttl=[HOUR, None]))
    assert "keeps every row of 'latest' for ever" in told
