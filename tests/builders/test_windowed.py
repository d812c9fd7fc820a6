from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pytest

from headrace import aggregates, errors
from headrace.functions import AggregateFunction
from headrace.windows import Hopping, Tumbling

SECOND = timedelta(seconds=1)
INSTANT = pa.timestamp("us", tz="UTC")


@pytest.fixture
def windowed(bids):
    return bids.key_by("auction").window(Tumbling(10 * SECOND))


def node_of(stream):
    return stream._graph.nodes[stream._port.node]


@dataclass
class Total:
    rows: int
    price: int


class Mean(AggregateFunction):
    def create_accumulator(self) -> Total:
        return Total(0, 0)

    def add(self, value, accumulator):
        return Total(accumulator.rows + 1, accumulator.price + value.price)

    def get_result(self, accumulator) -> float:
        return accumulator.price / accumulator.rows

    def merge(self, a, b):
        return Total(a.rows + b.rows, a.price + b.price)


class Silent(Mean):
    def create_accumulator(self):
        return Total(0, 0)


def test_results_have_key_window_pane_firing_and_aggregates(windowed):
    result = windowed.aggregate(bids=aggregates.count(), mean=aggregates.avg("price"))
    assert result.schema == pa.schema(
        [
            ("auction", pa.int64()),
            ("window_start", INSTANT),
            ("window_end", INSTANT),
            ("pane", pa.string()),
            ("firing", pa.int64()),
            ("bids", pa.int64()),
            ("mean", pa.float64()),
        ]
    )


def test_late_rows_keep_their_columns_and_errors_are_dead_letters(bids, windowed):
    result = windowed.aggregate(bids=aggregates.count())
    assert result.late.schema == bids.schema
    assert "cause" in result.errors.schema.names


def test_allowed_lateness_leaves_the_stream_it_was_called_on(windowed):
    longer = windowed.allowed_lateness(30 * SECOND)
    assert node_of(longer.aggregate(n=aggregates.count())).lateness_us == 30_000_000
    assert node_of(windowed.aggregate(n=aggregates.count())).lateness_us == 0


@pytest.mark.parametrize("lateness", [-SECOND, 30, None])
def test_a_lateness_that_is_negative_or_no_duration_is_refused(windowed, lateness):
    with pytest.raises(errors.BuildError, match="allowed lateness"):
        windowed.allowed_lateness(lateness)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Tumbling(0 * SECOND), "longer than zero"),
        (lambda: Tumbling(-SECOND), "negative"),
        (lambda: Hopping(10 * SECOND, 20 * SECOND), "longer than the size"),
        (lambda: 10 * SECOND, "windows.Tumbling"),
        (lambda: Tumbling, "windows.Tumbling"),
    ],
)
def test_a_window_that_does_not_fit_is_refused(bids, make, problem):
    with pytest.raises(errors.BuildError, match=problem):
        bids.key_by("auction").window(make())


def test_a_window_needs_a_watermark_strategy_on_every_source(env, bids, source):
    timeless = env.from_source(source(bids.schema), uid="timeless")
    with pytest.raises(
        errors.BuildError, match=r"'timeless' \(test_windowed.*bounded_out_of_order"
    ):
        bids.union(timeless).key_by("auction").window(Tumbling(SECOND))


def test_dead_letters_have_no_event_time(bids):
    with pytest.raises(errors.BuildError, match="errors output of 'bids'"):
        bids.errors.key_by("partition").window(Tumbling(SECOND))


def test_late_rows_and_results_have_event_time(windowed):
    result = windowed.aggregate(bids=aggregates.count())
    result.late.key_by("auction").window(Tumbling(SECOND))
    result.key_by("bids").window(Tumbling(SECOND))


def test_an_unknown_field_is_refused_with_the_fields(windowed):
    with pytest.raises(errors.SchemaError, match=r"sum\('prise'\).*'price'.*auction \(int64\)"):
        windowed.aggregate(total=aggregates.sum("prise"))


def test_a_field_of_the_wrong_type_is_refused(windowed):
    with pytest.raises(errors.SchemaError, match="numbers, but 'channel' is string"):
        windowed.aggregate(total=aggregates.sum("channel"))


@pytest.mark.parametrize("value", [aggregates.count, len, lambda row: row.price])
def test_a_function_that_was_not_called_is_pointed_out(windowed, value):
    with pytest.raises(errors.BuildError, match="call it"):
        windowed.aggregate(total=value)


@pytest.mark.parametrize("value", ["price", 1, None, int])
def test_what_is_no_aggregate_is_refused(windowed, value):
    with pytest.raises(errors.BuildError, match=r"hr\.count\(\)"):
        windowed.aggregate(total=value)


def test_no_aggregate_at_all_is_refused(windowed):
    with pytest.raises(errors.BuildError, match="at least one"):
        windowed.aggregate()


@pytest.mark.parametrize("name", ["auction", "window_start", "window_end", "firing"])
def test_a_result_may_not_hide_a_column(windowed, name):
    with pytest.raises(errors.BuildError, match=f"hide the column '{name}'"):
        windowed.aggregate(**{name: aggregates.count()})


def test_a_key_with_the_name_of_a_window_column_must_be_renamed(windowed):
    again = windowed.aggregate(n=aggregates.count()).key_by("window_end").window(Tumbling(SECOND))
    with pytest.raises(errors.BuildError, match="rename it first"):
        again.aggregate(most=aggregates.max("n"))


@pytest.mark.parametrize("given", [Mean(), Mean])
def test_an_aggregate_function_or_its_class_is_taken(windowed, given):
    assert windowed.aggregate(mean=given).schema.field("mean").type == pa.float64()


def test_an_accumulator_without_a_type_is_refused(windowed):
    with pytest.raises(
        errors.BuildError, match=r"Silent\.create_accumulator needs a return annotation"
    ):
        windowed.aggregate(mean=Silent())
