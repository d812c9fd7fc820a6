"""Words keep the order of values and give them back."""

from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.aggregates.words import from_words, has_words, to_words

NAN = float("nan")
SORTED = [
    (pa.int8(), [-128, -1, 0, 127]),
    (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    (pa.float64(), [-np.inf, -1e300, -1.5, -0.0, 0.0, 5e-324, 2.5, np.inf, NAN]),
    (pa.float32(), [-np.inf, -1.5, 0.0, 2.5, NAN]),
    (pa.bool_(), [False, True]),
    (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    (pa.time64("us"), [time(0), time(23, 59)]),
    (pa.duration("us"), [timedelta(days=-1), timedelta(0), timedelta(seconds=1)]),
    (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)]),
]


@pytest.mark.parametrize(("kind", "values"), SORTED, ids=[str(kind) for kind, _ in SORTED])
def test_words_have_the_order_of_the_values(kind: pa.DataType, values: list[object]) -> None:
    words = to_words(pa.array(values, kind))
    assert (np.diff(words.astype(object)) > 0).all()


@pytest.mark.parametrize(("kind", "values"), SORTED, ids=[str(kind) for kind, _ in SORTED])
def test_words_give_the_values_back(kind: pa.DataType, values: list[object]) -> None:
    array = pa.array([*values, None], kind)
    valid = np.arange(len(array)) < len(values)
    again = from_words(to_words(array), kind, valid)
    assert again.type == kind
    assert repr(again.to_pylist()) == repr(array.to_pylist())


def test_a_slot_without_a_value_may_hold_any_word() -> None:
    made = from_words(np.array([2**63 - 1, 5]), pa.int8(), np.array([False, True]))
    assert made.to_pylist() == [None, 5]


def test_longer_values_have_no_words() -> None:
    assert not any(map(has_words, [pa.string(), pa.decimal128(10, 2), pa.list_(pa.int64())]))
