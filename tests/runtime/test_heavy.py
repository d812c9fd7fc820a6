"""The heaviest keys are named with exactly their rows; keys that are alike are not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace._runtime.audit import observed
from headrace._runtime.heavy import HeavyKeys, heaviest
from headrace._runtime.report import TaskReport
from headrace._runtime.rows import Rows
from headrace._runtime.windows.panes.feeder import WindowFeeder
from headrace.aggregates import Aggregate
from headrace.windows import Window
from tests.runtime.windows.cases import window_node

RANDOM = np.random.default_rng(3)
SCHEMA = pa.schema([("key", pa.int64()), ("name", pa.string()), ("n", pa.int64())])
#: One counts rows anyway, the other does not.
AGGREGATES = [{"rows": agg.count()}, {"total": agg.sum("n")}]


def fed(
    folds: Sequence[np.ndarray],
    aggregates: dict[str, Aggregate],
    *,
    names: Sequence[str] = ("key",),
) -> dict[str, int]:
    feeder = WindowFeeder(
        window_node(Window(10, 10), 0, aggregates, keys=tuple(names), schema=SCHEMA)
    )
    for keys in folds:
        columns = [pa.array(keys), pa.array(keys % 3).cast(pa.string()), pa.array(keys)]
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        list(feeder.feed(Rows(batch, np.zeros(len(keys), np.int64)), -100))
        list(feeder.flush())
    return dict(feeder.heavy())


def skewed(rows: int, *shares: float) -> np.ndarray:
    keys = RANDOM.integers(1_000, 200_000, rows)
    place = 0
    for number, share in enumerate(shares):
        keys[place : place + int(rows * share)] = number
        place += int(rows * share)
    return RANDOM.permutation(keys)


@pytest.mark.parametrize("aggregates", AGGREGATES, ids=["counted", "not counted"])
def test_heavy_keys_have_exactly_their_rows(aggregates: dict[str, Aggregate]) -> None:
    folds = [skewed(30_000, 0.5, 0.1), skewed(30_000, 0.25)]
    exact = [Counter(fold.tolist()) for fold in folds]
    found = fed(folds, aggregates)
    assert found == {'{"key": 0}': exact[0][0] + exact[1][0], '{"key": 1}': exact[0][1]}
    assert next(iter(found)) == '{"key": 0}'


@pytest.mark.parametrize("aggregates", AGGREGATES, ids=["counted", "not counted"])
def test_keys_that_are_alike_are_not_heavy(aggregates: dict[str, Aggregate]) -> None:
    assert fed([RANDOM.integers(0, 50_000, 60_000)], aggregates) == {}


def test_a_key_of_several_columns_is_named_with_all_of_them() -> None:
    found = fed([np.array([5, 5, 5, 4])], AGGREGATES[1], names=["key", "name"])
    assert found == {'{"key": 5, "name": "2"}': 3, '{"key": 4, "name": "1"}': 1}


def test_rows_of_one_key_in_several_panes_are_added() -> None:
    heavy = HeavyKeys(["key"])
    heavy.see([pa.array([1, 1, 2]), pa.array([0, 10, 0])], pa.array([5, 7, 6]))
    assert heavy.found == {'{"key": 1}': 12, '{"key": 2}': 6}


def test_a_step_without_keys_has_none_that_is_heavy() -> None:
    assert fed([np.zeros(10_000, np.int64)], AGGREGATES[0], names=()) == {}


def test_no_more_than_eight_are_kept() -> None:
    keys = np.repeat(np.arange(20), np.arange(1, 21))
    found = fed([keys], AGGREGATES[0])
    assert [json.loads(key)["key"] for key in found] == list(range(19, 11, -1))
    assert list(found.values()) == list(range(20, 12, -1))


def test_a_sample_finds_a_key_with_little_more_than_its_share_wherever_it_lies() -> None:
    # At places that a stride of 128 would never see, and at those that it would see alone.
    for keys in (np.arange(262_144) % 128 == 1, np.arange(262_144) % 128 == 0):
        column = pa.array(np.where(keys, 7, RANDOM.integers(1_000, 10**6, len(keys))))
        assert HeavyKeys(["key"]).suspects([column])


def test_the_tasks_of_an_epoch_are_added_up() -> None:
    reports = []
    for task in range(2):
        report = TaskReport(0, task, 2, str(task))
        report.weigh("per-key", {f"k{n}": n + task for n in range(12 * task, 12 * task + 12)})
        report.weigh("per-key", {"k13": 100})
        reports.append(TaskReport.from_json(report.to_json()))
    heavy = observed(reports).heavy["per-key"]
    assert len(heavy) == 16
    assert heavy["k13"] == 214
    assert list(heavy)[:2] == ["k13", "k23"]
    assert heaviest({"b": 1, "a": 1, "c": 2}, 2) == {"c": 2, "a": 1}
