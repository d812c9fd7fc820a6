"""Nested values as JSON: what another parser reads back."""

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa

from headrace.connectors.databases.jsontext import json_texts


def test_nested_values_are_json() -> None:
    kind = pa.struct(
        {
            "s": pa.string(),
            "m": pa.map_(pa.int64(), pa.list_(pa.float64())),
            "d": pa.decimal128(30, 2),
            "at": pa.timestamp("us", tz="UTC"),
            "day": pa.date32(),
            "clock": pa.time64("us"),
            "long": pa.duration("us"),
            "raw": pa.binary(),
            "inner": pa.struct({"b": pa.bool_()}),
        }
    )
    value = {
        "s": 'ü "q" \\ \n',
        "m": [(1, [1.5, None, math.nan, -math.inf])],
        "d": Decimal("12345678901234567890.10"),
        "at": datetime(2025, 1, 1, tzinfo=UTC),
        "day": date(2025, 1, 2),
        "clock": time(1, 2),
        "long": timedelta(milliseconds=1500),
        "raw": b"hi",
        "inner": {"b": True},
    }
    texts = json_texts(pa.array([value, None, {}], kind)).to_pylist()
    assert json.loads(texts[0], parse_float=Decimal) == {
        "s": 'ü "q" \\ \n',
        "m": {"1": [Decimal("1.5"), None, "NaN", "-Infinity"]},
        "d": Decimal("12345678901234567890.10"),
        "at": "2025-01-01T00:00:00+00:00",
        "day": "2025-01-02",
        "clock": "01:02:00",
        "long": Decimal("1.5"),
        "raw": "\\x6869",
        "inner": {"b": True},
    }
    assert texts[1] is None
    assert set(json.loads(texts[2]).values()) == {None}
