"""`first`, `last` and `top`: what is refused where it is written, what they become, and which state they warn of."""

import warnings
from datetime import timedelta

import pytest

import headrace as hr
from headrace._graph.changes import carries_changes
from headrace._graph.join_nodes import Keep, KeepRow
from headrace.errors import BuildError, SchemaError, UnboundedStateWarning

HOUR = timedelta(hours=1)


def node_of(stream) -> KeepRow:
    node = stream._graph.nodes[stream._port.node]
    assert isinstance(node, KeepRow)
    return node


@pytest.fixture
def edited(bids):
    """A stream that withdraws its rows."""
    window = hr.windows.Tumbling(timedelta(seconds=10))
    return bids.key_by("auction").window(window).retracting().aggregate(n=hr.count(), uid="counts")


def test_each_keeps_the_columns_and_says_what_changes(bids):
    keyed = bids.key_by("auction")
    first, last = keyed.first(forever=True), keyed.last(forever=True)
    top = keyed.top("price", forever=True)
    assert first.schema.equals(bids.schema)
    assert last.schema.names == top.schema.names == [*bids.schema.names, "change"]
    kinds = [carries_changes(s._graph.nodes, s._port) for s in (first, last, top)]
    assert kinds == [False, True, True]
    assert [str(node_of(stream).keeps[0]) for stream in (first, last, top)] == [
        "first row",
        "last row",
        "top row by price descending",
    ]
    assert node_of(first).keys == (("auction",),)
    assert node_of(first).where.startswith("test_first_last_top.py:")


def test_rows_live_for_ever_or_for_a_time(bids):
    keyed = bids.key_by("auction")
    assert node_of(keyed.first(ttl=HOUR)).ttls_us == (3_600_000_000,)
    assert node_of(keyed.last(forever=True)).ttls_us == (None,)
    with pytest.raises(BuildError, match="ttl"):
        keyed.top("price", ttl=timedelta(0))


def test_several_columns_each_in_its_direction(bids):
    keyed = bids.key_by("auction")
    top = keyed.top(["price", "date_time"], descending=[True, False], forever=True)
    assert node_of(top).keeps == (Keep("top", ("price", "date_time"), (True, False)),)
    down = keyed.top(["price", "channel"], descending=False, forever=True)
    assert node_of(down).keeps == (Keep("top", ("price", "channel"), (False, False)),)


@pytest.mark.parametrize(
    ("by", "descending", "told"),
    [
        ([], True, "needs a column to order rows by"),
        ("price", [True, False], "descending is true or false, or one of these for each column"),
        (["price", "channel"], [True, None], "descending is true or false"),
        ("prize", True, r"top: there is no field 'prize'.*'price'"),
        ("tags", True, r"cannot be ordered by 'tags', which is list<"),
    ],
)
def test_an_order_that_is_none_is_refused(bids, by, descending, told):
    with pytest.raises((BuildError, SchemaError), match=f"(?s){told}"):
        bids.key_by("auction").top(by, descending=descending)


def test_of_rows_that_are_withdrawn_only_the_last_is_known(edited):
    keyed = edited.key_by("auction")
    for make in (keyed.first, lambda: keyed.top("n")):
        with pytest.raises(
            BuildError, match=r"'counts' withdraws earlier results, .* use last\(\)"
        ):
            make()
    last = keyed.last(forever=True)
    assert last.schema.names[-1] == "change"
    assert sorted(last.schema.names) == sorted(edited.schema.names)
    assert node_of(last).changing == (True,)


def test_a_column_of_the_name_of_changes_is_in_the_way(bids):
    named = bids.select("auction", change="channel")
    with pytest.raises(BuildError, match="adds the column 'change' to its result"):
        named.key_by("auction").last()
    assert named.key_by("auction").first(forever=True).schema.names == ["auction", "change"]


def test_rows_without_a_key_are_dead_letters(bids):
    first = bids.key_by("auction").first(forever=True, uid="opening")
    assert "cause" in first.errors.schema.names
    with pytest.raises(BuildError, match="'opening' has no late rows"):
        _ = first.late_left


@pytest.mark.parametrize("rule", ["first", "last", "top"])
def test_a_row_for_every_key_is_warned_of(bids, rule):
    by = ["price"] if rule == "top" else []

    def make(**options):
        return getattr(bids.key_by("auction"), rule)(*by, **options)

    with pytest.warns(UnboundedStateWarning) as caught:
        make(uid="kept")
    (warning,) = caught
    assert warning.filename == __file__
    told = str(warning.message)
    assert told.startswith("'kept' (test_first_last_top.py:")
    assert "a row for every 'auction' that ever comes" in told
    assert f"{rule}(..., forever=True)" in told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(forever=True)
        make(ttl=HOUR)


def test_a_key_with_few_values_is_not_warned_of(bids):
    few = bids.select("price", large=hr.col("price") > 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few.key_by("large").last()


@pytest.mark.parametrize("by", [5, [], [5], None])
def test_rows_are_ordered_by_names_of_columns(bids, by):
    with pytest.raises(BuildError, match="needs a column to order rows by"):
        bids.key_by("auction").top(by)


def test_nothing_lives_for_ever_and_for_a_time(bids):
    with pytest.raises(BuildError, match="leave one of them out"):
        bids.key_by("auction").last(ttl=HOUR, forever=True)
    with pytest.raises(BuildError, match="leave one of them out"):
        bids.join(bids, on="auction", ttl=HOUR, forever=True)
    bids.join(bids, on="auction", ttl=[HOUR, None], forever=True)
