"""Change rows in formats that write changes as messages of their own."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from headrace._graph.nodes import WriteSink
from headrace._runtime.audit import counts_of
from headrace._runtime.report import TaskReport
from headrace._runtime.staging import Staging
from headrace.connectors.kafka import KafkaSink
from headrace.connectors.kafka.writing.encoding import Layout, RecordEncoder
from headrace.endpoints import SinkContext
from headrace.formats.messages import DebeziumJson


def test_a_replaced_row_is_one_record() -> None:
    layout = Layout(
        topic="out",
        topic_column=None,
        format=DebeziumJson(),
        key=("id",),
        key_format="json",
        partition_by=None,
        headers=None,
        timestamp=None,
        upsert=False,
    )
    batch = pa.record_batch({"id": [1, 1, 1], "change": ["-U", "+U", "-D"]})
    records = RecordEncoder(layout, batch.schema)(batch, 0)
    assert [json.loads(value)["op"] for value in records["value"].to_pylist()] == ["u", "d"]
    assert records["key"].null_count == 0
    no_key = RecordEncoder(replace(layout, key=()), batch.schema)(batch, 0)
    assert [json.loads(value)["op"] for value in no_key["value"].to_pylist()] == ["d", "u", "d"]


def test_rows_that_are_not_written_are_accounted_for(tmp_path: Path) -> None:
    rows = pa.record_batch({"id": [1, 1, 2], "change": ["-U", "+U", "-U"]})
    sink = KafkaSink("unused:9092", "out", mode="upsert", key="id")
    node = WriteSink(id=1, uid="out", inputs=(), schema=rows.schema, sink=sink)
    context = SinkContext("job", "1f0c", "out", rows.schema, tmp_path)
    staging, report = Staging({"out": context}, 0, "task"), TaskReport(0, 0, 1, "attempt")
    staging.write(node, rows)
    staging.close(report)
    assert counts_of([report]) == {"out": {"out": 2, "filtered": 1}}
