"""Dead letters show rows as JSON."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from headrace._runtime.payload import as_json


def test_every_kind_of_value_has_a_text() -> None:
    batch = pa.RecordBatch.from_pylist(
        [
            {
                "at": datetime(2025, 1, 1, tzinfo=UTC),
                "price": Decimal("1.50"),
                "raw": b"\xff",
                "tags": ["ä"],
                "none": None,
            }
        ]
    )
    [text] = as_json(batch)
    assert json.loads(text) == {
        "at": "2025-01-01T00:00:00+00:00",
        "price": "1.50",
        "raw": "/w==",
        "tags": ["ä"],
        "none": None,
    }
