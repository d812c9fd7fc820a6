"""Keys of every type, in files and as functions get them."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace._graph.nodes import MAIN
from headrace._runtime.rows import Rows
from headrace.keys import check_key_type
from headrace.lookups import FileTable
from tests.runtime.joins.lookup_steps import column, outputs, step

AT = datetime(2025, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
#: Of each type two keys.
KEYS: dict[pa.DataType, tuple[Any, Any]] = {
    pa.bool_(): (True, False),
    pa.int8(): (-1, 5),
    pa.uint64(): (2**64 - 1, 1),
    pa.float32(): (0.5, float("nan")),
    pa.decimal128(9, 2): (Decimal("1.50"), Decimal("-2.25")),
    pa.string(): ("", "x"),
    pa.large_string(): ("", "x"),
    pa.string_view(): ("", "x"),
    pa.dictionary(pa.int8(), pa.string()): ("", "x"),
    pa.binary(): (b"", b"\0a"),
    pa.binary(3): (b"abc", b"abd"),
    pa.date32(): (date(2025, 1, 1), date(2025, 1, 2)),
    pa.date64(): (date(2025, 1, 1), date(2025, 1, 2)),
    pa.time32("s"): (time(1), time(2)),
    pa.time64("us"): (time(1), time(2)),
    pa.timestamp("ms", "UTC"): (AT, AT + DAY),
    pa.timestamp("ns", "UTC"): (AT, AT + DAY),
    pa.timestamp("us"): (AT.replace(tzinfo=None), AT.replace(tzinfo=None) + DAY),
    pa.duration("us"): (DAY, -DAY),
}
#: Tables are not kept in these.
STORED = {
    pa.string_view(): pa.large_string(),
    pa.dictionary(pa.int8(), pa.string()): pa.string(),
}


@pytest.mark.parametrize("kind", KEYS, ids=str)
def test_keys_of_every_type_are_found(kind: pa.DataType, tmp_path: Path) -> None:
    assert check_key_type(kind)
    one, other = KEYS[kind]
    stored = STORED.get(kind, kind)
    keys = pa.array([other, None, one, other], stored).cast(kind)
    rows = Rows(pa.record_batch([keys], ["k"]), None)
    table = pa.table({"k": pa.array([one, other], stored), "value": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet")
    file = FileTable(tmp_path / "t.parquet", key="k", schema=table.schema, columns=["value"])

    def find(asked: list[Any]) -> dict[Any, int]:
        assert [type(key) for key in asked] == [type(other), type(one)]
        return {key: 1 if key == one else 2 for key in asked}

    for asked in (file, find):
        found = outputs(step(asked, rows.batch.schema, "k"), rows)[MAIN]
        assert column(found, "value") == [2, None, 1, 2]
        assert found.batch.schema.field("k").type == kind
