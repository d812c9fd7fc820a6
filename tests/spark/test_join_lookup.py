"""Look-up joins in Spark's workers, before a shuffle and behind it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import headrace as hr
from headrace.connectors import generator
from headrace.connectors.memory import MemorySink
from headrace.lookups import Cache, FileTable, LookupFunction

ROWS = 20_000
SCHEMA = pa.schema({"id": pa.int64(), "customer": pa.int64()})


class Levels(LookupFunction[int, int]):
    """The level of a customer; 13 has none, and 17 cannot be told."""

    cache = Cache(size=1_000)

    async def fetch(self, keys: Sequence[int]) -> Mapping[int, int]:
        if 17 in keys:
            raise ValueError("17 is not to be told")
        return {key: key % 3 for key in keys if key != 13}


def orders(start: int, end: int) -> pa.RecordBatch:
    numbers = np.arange(start, end, dtype=np.int64)
    return pa.record_batch([numbers, numbers % 100], SCHEMA)


def test_rows_meet_files_and_functions_before_a_shuffle_and_behind_it(tmp_path: Path) -> None:
    names = pa.table({"id": range(90), "name": [f"c{n}" for n in range(90)]})
    pq.write_table(names, tmp_path / "names.parquet")
    levels = pa.table({"level": [0, 1, 1], "label": ["low", "middle", "mean"]})
    pq.write_table(levels, tmp_path / "levels.parquet")
    env = hr.Environment(
        "lookups", checkpoint=tmp_path / "state", shards=2, epochs=hr.Epochs(rows=8_000)
    )
    stream = env.from_source(generator.Function(SCHEMA, orders, rows=ROWS), uid="orders")
    named = stream.join_lookup(
        FileTable(tmp_path / "names.parquet", key="id", columns=["name"]),
        on="customer",
        how="inner",
        uid="named",
    )
    levelled = named.join_lookup(Levels(), on="customer", on_error="dead_letter", uid="levelled")
    table = FileTable(tmp_path / "levels.parquet", key="level", columns=["label"])
    level = levelled.select("id", "name", level=hr.col("value"))
    labelled = level.rebalance(uid="moved").join_lookup(table, on="level", uid="labelled")
    kept, dead = MemorySink(), MemorySink()
    labelled.sink_to(kept, uid="kept")
    levelled.errors.sink_to(dead, uid="dead")
    job = env.execute()
    assert job.finished
    labels = {0: ["low"], 1: ["middle", "mean"]}
    wanted = []
    for n in range(ROWS):
        customer = n % 100
        if customer < 90 and customer != 17:
            value = None if customer == 13 else customer % 3
            wanted += [(n, f"c{customer}", value, label) for label in labels.get(value, [None])]
    found = [tuple(row.values()) for row in kept.to_pylist()]
    assert sorted(found, key=str) == sorted(wanted, key=str)
    letters = sorted(row["offset"] for row in dead.to_pylist())
    assert letters == list(range(17, ROWS, 100))
    counts = job.counts
    assert counts["named"] == {"in": ROWS, "out": ROWS * 9 // 10, "filtered": ROWS // 10}
    assert counts["levelled"]["dead"] == ROWS // 100
