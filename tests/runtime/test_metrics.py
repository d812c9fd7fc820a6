"""What functions count: by name, over tasks and epochs, the same however the work was divided."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.audit import observed
from headrace._runtime.histogram import Distribution, Histogram
from headrace._runtime.metrics import Metrics, added, readings
from headrace._runtime.report import TaskReport
from headrace.errors import UserCodeError
from tests.examples import examples

FLOATS = st.floats(-1e300, 1e300, allow_subnormal=True)


def report(task: int, stage: int = 1) -> TaskReport:
    return TaskReport(stage, task, 2, f"attempt-{stage}-{task}")


def sent(*reports: TaskReport) -> list[TaskReport]:
    """As they arrive at the driver."""
    return [TaskReport.from_json(json.loads(json.dumps(r.to_json()))) for r in reports]


def distribution(values: list[float]) -> Distribution:
    histogram = Histogram()
    for value in values:
        histogram.update(value)
    found = histogram.reading()
    assert found is not None
    return found


def test_counters_and_histograms_add_up_over_tasks_and_epochs() -> None:
    total: dict[str, Any] = {}
    for epoch in range(3):
        one, two = report(0), report(1)
        one.metrics_of("a").counter("rows").inc()
        two.metrics_of("a").counter("rows").inc(10)
        one.metrics_of("a").histogram("sizes").update(epoch)
        two.metrics_of("b").counter("other").inc(0)
        total = json.loads(json.dumps(added(total, observed(sent(one, two)).metrics)))
    found = readings(total)
    assert found["a"]["rows"] == 33
    assert found["b"] == {"other": 0}
    sizes = found["a"]["sizes"]
    assert isinstance(sizes, Distribution)
    assert (sizes.count, sizes.sum, sizes.min, sizes.max, sizes.mean) == (3, 3.0, 0.0, 2.0, 1.0)


def test_a_gauge_is_that_of_the_last_task_in_the_last_epoch_that_set_it() -> None:
    early, late, reading = report(0), report(1), report(0, stage=0)
    early.metrics_of("a").gauge("depth").set(1)
    late.metrics_of("a").gauge("depth").set(2.5)
    reading.metrics_of("a").gauge("depth").set(9)
    total = added({}, observed(sent(late, reading, early)).metrics)
    assert readings(total) == {"a": {"depth": 2.5}}
    quiet = report(1)
    quiet.metrics_of("a").gauge("depth")
    assert readings(added(total, observed(sent(quiet)).metrics)) == {"a": {"depth": 2.5}}


def test_a_metric_is_the_same_object_for_one_name() -> None:
    metrics = Metrics("a")
    assert metrics.counter("n") is metrics.counter("n")
    metrics.counter("n").inc()
    metrics.counter("n").inc(-3)
    assert metrics.readings() == {"n": -2}


def test_what_never_got_a_value_is_left_out() -> None:
    metrics = Metrics("a")
    metrics.gauge("g")
    metrics.histogram("h")
    assert metrics.readings() == metrics.to_json() == {}
    idle = report(0)
    idle.metrics_of("a")
    assert idle.to_json()["metrics"] == {}


def test_a_name_of_two_kinds_is_refused_in_a_task_and_over_tasks() -> None:
    metrics = Metrics("step")
    metrics.counter("n")
    with pytest.raises(UserCodeError, match=r"'step'.*'n' as a gauge, but it is a counter"):
        metrics.gauge("n")
    one, two = report(0), report(1)
    one.metrics_of("step").counter("n").inc()
    two.metrics_of("step").histogram("n").update(1)
    with pytest.raises(UserCodeError, match=r"'n' as a histogram, but it is a counter"):
        observed(sent(one, two))


@pytest.mark.parametrize("name", ["", "a b", "größe", "a/b", "n\n"])
def test_names_have_few_signs(name: str) -> None:
    with pytest.raises(UserCodeError, match="letters, digits"):
        Metrics("a").counter(name)
    Metrics("a").counter("rows.too-late_2")


def test_there_cannot_be_a_metric_for_every_key() -> None:
    metrics = Metrics("a")
    for key in range(1_000):
        metrics.counter(f"key-{key}")
    with pytest.raises(UserCodeError, match=r"1,000 metrics already.*belongs into rows"):
        metrics.counter("key-1000")


def test_numbers_of_numpy_count_and_other_things_are_named() -> None:
    metrics = Metrics("a")
    metrics.counter("n").inc(np.int64(3))  # type: ignore[arg-type]
    metrics.gauge("g").set(np.float32(0.5))  # type: ignore[arg-type]
    metrics.histogram("h").update(np.int32(7))  # type: ignore[arg-type]
    assert json.loads(json.dumps(metrics.to_json()))["n"] == ["counter", 3]
    assert metrics.readings()["g"] == 0.5
    metrics.counter("n").inc(0.5)  # type: ignore[arg-type]
    with pytest.raises(UserCodeError, match=r"'n' of step 'a'.*not a number.*whole numbers"):
        metrics.to_json()


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e301])
def test_a_histogram_takes_numbers_that_can_be_added(value: float) -> None:
    with pytest.raises(ValueError, match="between -1e300 and 1e300"):
        Histogram().update(value)


@examples(15)
@given(st.lists(FLOATS, min_size=1), st.integers(1, 5))
def test_a_histogram_does_not_depend_on_how_values_were_divided(
    values: list[float], parts: int
) -> None:
    total = Histogram()
    for part in range(parts):
        piece = Histogram()
        for value in values[part::parts]:
            piece.update(value)
        if piece.to_json() is not None:
            total.add(Histogram.from_json(json.loads(json.dumps(piece.to_json()))))
    found = total.reading()
    assert found == distribution(values)
    assert found is not None
    assert Fraction(found.sum) == Fraction(float(sum(map(Fraction, values))))


@examples(15)
@given(st.lists(FLOATS, min_size=1), st.floats(0, 1))
def test_a_quantile_is_near_the_value_of_that_rank(values: list[float], q: float) -> None:
    found = distribution(values)
    assert (found.quantile(0), found.quantile(1)) == (min(values), max(values))
    exact = sorted(values)[int(q * (len(values) - 1))]
    assert math.isclose(found.quantile(q), exact, rel_tol=0.13, abs_tol=1e-320)


def test_quantiles_of_many_values() -> None:
    found = distribution([float(n) for n in range(1, 10_001)])
    assert (found.count, found.sum) == (10_000, 50_005_000.0)
    assert found.quantile(0.5) == pytest.approx(5_000, rel=0.01)
    assert found.quantile(0.99) == pytest.approx(9_900, rel=0.01)
    with pytest.raises(ValueError, match="from 0 to 1"):
        found.quantile(50)
