"""What can be said of windows, which node it becomes, and what is refused on the user's line."""

from collections.abc import Iterator
from datetime import timedelta

import pyarrow as pa
import pytest

from headrace import aggregates, evictors, state, windows
from headrace._graph import nodes
from headrace.errors import BuildError
from headrace.functions import ProcessWindowFunction
from headrace.outputs import OutputTag
from headrace.triggers import Trigger, TriggerResult, any_of, count, event_time, purging

SECOND = timedelta(seconds=1)


class Each(Trigger):
    def on_element(self, row, timestamp, window, context):
        return TriggerResult.FIRE


class Sizes(ProcessWindowFunction):
    def process(self, key, context, rows) -> Iterator[int]:
        yield len(rows)


class Slots(windows.WindowAssigner):
    def assign(self, row, timestamp):
        yield timestamp, timestamp + SECOND


def step(stream):
    return stream._graph.nodes[stream._step]


@pytest.fixture
def by_auction(bids):
    return bids.key_by("auction")


@pytest.mark.parametrize(
    ("window", "kind", "added"),
    [
        (windows.Tumbling(SECOND), nodes.WindowAggregate, 2),
        (windows.Cumulating(4 * SECOND, SECOND), nodes.WindowAggregate, 2),
        (windows.Session(SECOND), nodes.SessionAggregate, 2),
        (windows.Count(3), nodes.CountAggregate, 0),
        (windows.Global(), nodes.WindowProcess, 0),
        (Slots(), nodes.WindowProcess, 2),
    ],
)
def test_windows_with_times_show_them(by_auction, window, kind, added):
    result = by_auction.window(window).aggregate(n=aggregates.count())
    assert type(step(result)) is kind
    bounds = ["window_start", "window_end"][:added]
    assert result.schema.names == ["auction", *bounds, "pane", "firing", "n"]


def test_a_look_back_keeps_the_row_and_adds_to_it(bids, by_auction):
    result = by_auction.window(windows.LookBack(SECOND)).aggregate(n=aggregates.count())
    assert result.schema.names == [*bids.schema.names, "n"]
    with pytest.raises(BuildError, match="would hide the column 'price'"):
        by_auction.window(windows.LookBack(SECOND)).aggregate(price=aggregates.count())


def test_count_window_is_a_window_of_rows(by_auction):
    result = by_auction.count_window(100, 10).aggregate(n=aggregates.count())
    assert step(result).window == windows.Count(100, 10)


def test_window_all_has_no_keys(bids):
    result = bids.window_all(windows.Tumbling(SECOND)).aggregate(n=aggregates.count())
    assert step(result).keys == ()
    assert result.schema.names == ["window_start", "window_end", "pane", "firing", "n"]


def test_windows_by_the_clock_and_by_number_need_no_event_time(env, bids, source):
    keyed = env.from_source(source(bids.schema)).key_by("auction")
    keyed.window(windows.Tumbling(SECOND, time="processing")).aggregate(n=aggregates.count())
    keyed.window(windows.Count(3)).aggregate(n=aggregates.count())
    with pytest.raises(BuildError, match="needs event time"):
        keyed.window(windows.Session(SECOND))


@pytest.mark.parametrize("said", ["trigger", "discarding", "retracting", "evictor"])
def test_settings_do_not_depend_on_the_order_of_calls(by_auction, said):
    calls = {
        "trigger": lambda w: w.trigger(Each()),
        "discarding": lambda w: w.discarding(),
        "retracting": lambda w: w.retracting(),
        "evictor": lambda w: w.evictor(evictors.count(3)),
    }
    first = by_auction.window(windows.Tumbling(SECOND)).allowed_lateness(5 * SECOND)
    one = calls[said](first).on_late("drop").aggregate(n=aggregates.count())
    other = calls[said](by_auction.window(windows.Tumbling(SECOND)).on_late("drop"))
    two = other.allowed_lateness(5 * SECOND).aggregate(n=aggregates.count())
    for name in ("lateness_us", "on_late", "accumulation"):
        assert getattr(step(one), name) == getattr(step(two), name)


def test_a_retracting_window_shows_what_it_withdraws(by_auction):
    result = by_auction.window(windows.Tumbling(SECOND)).retracting()
    assert "change" in result.aggregate(n=aggregates.count()).schema.names


def test_what_was_withdrawn_may_not_get_lost(by_auction):
    result = by_auction.window(windows.Tumbling(SECOND)).retracting()
    counted = result.aggregate(n=aggregates.count())
    with pytest.raises(BuildError, match="column 'change', and select would lose it"):
        counted.select("auction", "n")
    kept = counted.select("auction", "n", "change")
    total = kept.key_by("auction").window(windows.Tumbling(10 * SECOND))
    assert step(total.aggregate(n=aggregates.sum("n"))).weighted
    with pytest.raises(BuildError, match="max"):
        total.aggregate(n=aggregates.max("n"))
    with pytest.raises(BuildError, match="retracting window"):
        total.process(Sizes())
    for window in (windows.Count(2), windows.LookBack(SECOND)):
        with pytest.raises(BuildError, match="retracting window"):
            kept.key_by("auction").window(window).aggregate(total=aggregates.sum("n"))
    with pytest.raises(BuildError, match="without an evictor"):
        total.evictor(evictors.count(2)).aggregate(total=aggregates.sum("n"))
    with pytest.raises(BuildError, match="discarding and purging forget it"):
        total.discarding().aggregate(total=aggregates.sum("n"))
    forgetful = total.trigger(any_of(purging(count(2)), event_time()))
    with pytest.raises(BuildError, match="discarding and purging forget it"):
        forgetful.aggregate(total=aggregates.sum("n"))
    by_clock = kept.key_by("auction").window(windows.Tumbling(SECOND, time="processing"))
    with pytest.raises(BuildError, match="by the clock that is another window"):
        by_clock.aggregate(total=aggregates.sum("n"))
    everything = kept.key_by("auction").window(windows.Global(time="processing"))
    assert step(everything.aggregate(total=aggregates.sum("n"))).weighted


def test_dead_letters_behind_a_retracting_window_are_no_changes(by_auction):
    counted = by_auction.window(windows.Tumbling(SECOND)).retracting()
    again = counted.aggregate(n=aggregates.count()).key_by("auction")
    total = again.window(windows.Tumbling(10 * SECOND)).aggregate(total=aggregates.sum("n"))
    assert total.errors.select("cause").schema.names == ["cause"]
    with pytest.raises(BuildError, match="would lose it"):
        total.late.select("n")


def test_a_function_says_its_columns_or_is_told(by_auction):
    windowed = by_auction.window(windows.Tumbling(SECOND))
    assert windowed.process(Sizes()).schema == pa.schema([("value", pa.int64())])
    with pytest.raises(BuildError, match="instance of a class derived from"):
        windowed.process(Sizes)
    with pytest.raises(BuildError, match="cannot be withdrawn"):
        windowed.retracting().process(Sizes())


def test_side_outputs_are_those_that_were_declared(by_auction):
    big, small = OutputTag("big", {"n": int}), OutputTag("small", {"n": int})
    windowed = by_auction.window(windows.Tumbling(SECOND))
    result = windowed.process(Sizes(), side_outputs=[big])
    assert result.side_output(big).schema == pa.schema([("n", pa.int64())])
    with pytest.raises(BuildError, match="no side output OutputTag\\('small'\\); it has big"):
        result.side_output(small)
    with pytest.raises(BuildError, match="two side outputs named 'big'"):
        windowed.process(Sizes(), side_outputs=[big, big])
    for wrong in (["big"], "big", big):
        with pytest.raises(BuildError, match=r"a list of them, not"):
            windowed.process(Sizes(), side_outputs=wrong)
    with pytest.raises(BuildError, match=r"is an hr.OutputTag\(name, schema\)"):
        result.side_output("big")


def test_what_only_a_function_needs_is_refused_without_one(by_auction):
    windowed = by_auction.window(windows.Tumbling(SECOND))
    for said in ({"schema": {"n": int}}, {"side_outputs": [OutputTag("big", {"n": int})]}):
        with pytest.raises(BuildError, match="only with then=function"):
            windowed.aggregate(n=aggregates.count(), **said)


def test_state_that_cannot_be_stored_is_refused_where_it_is_used(by_auction):
    class Counting(Each):
        seen: state.Value[set]

    class Remembering(Sizes):
        seen: state.Value[set]

    windowed = by_auction.window(windows.Tumbling(SECOND))
    with pytest.raises(BuildError, match=r"Counting\.seen"):
        windowed.trigger(Counting())
    with pytest.raises(BuildError, match=r"Remembering\.seen"):
        windowed.process(Remembering())


def test_late_rows_have_one_way_to_go(by_auction):
    windowed = by_auction.window(windows.Tumbling(SECOND))
    dropped = windowed.on_late("drop").aggregate(n=aggregates.count(), uid="w")
    with pytest.raises(BuildError, match=r"'w' has no late output: on_late\('drop'\)"):
        _ = dropped.late
    with pytest.raises(BuildError, match="choose 'side_output', 'drop', 'own_window'"):
        windowed.on_late("ignore")
    with pytest.raises(BuildError, match="cannot be made for late rows alone"):
        by_auction.window(windows.Count(3)).on_late("own_window")
    with pytest.raises(BuildError, match="no end that a row could miss"):
        by_auction.window(windows.Global()).allowed_lateness(SECOND)


def test_wrong_things_are_named(bids, by_auction):
    with pytest.raises(BuildError, match="window takes one of"):
        by_auction.window(10)
    with pytest.raises(BuildError, match="time='wall' is not a time"):
        by_auction.window(type("ByTheWall", (Slots,), {"time": "wall"})())
    with pytest.raises(BuildError, match="trigger takes one of"):
        by_auction.window(windows.Tumbling(SECOND)).trigger("count")
    with pytest.raises(BuildError, match="evictor takes one of"):
        by_auction.window(windows.Tumbling(SECOND)).evictor(3)
    with pytest.raises(BuildError, match="Each cannot be used with windows that merge"):
        by_auction.window(windows.Session(SECOND)).trigger(Each())
    with pytest.raises(BuildError, match="takes no trigger"):
        by_auction.window(windows.LookBack(SECOND)).discarding().aggregate(n=aggregates.count())


def test_a_look_back_is_not_reduced(by_auction):
    with pytest.raises(BuildError, match="cannot be reduced to one"):
        by_auction.window(windows.LookBack(SECOND)).reduce(max)


def test_reduce_gives_the_columns_of_a_row(by_auction, bids):
    slim = bids.select("auction", "price").key_by("auction")
    result = slim.window(windows.Tumbling(SECOND)).reduce(max, uid="first")
    assert result.schema.names == [
        "auction", "window_start", "window_end", "pane", "firing", "price",
    ]  # fmt: skip
    assert result.late.schema.names == ["auction", "price"]
