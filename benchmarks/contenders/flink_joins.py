"""Flink joins two streams, in SQL. Runs in a virtual environment of its own.

    python flink_joins.py KIND ROWS KEYS EVENT_RATE CORES [DIRECTORY]

A short job warms the JVM up. Then the clock runs from the moment the job is RUNNING until it is FINISHED, so starting the
JVM and the little cluster inside it is not counted. State is on the heap and checkpointed every second; rows are not copied
between steps of one task (`pipeline.object-reuse`), which is up to a fifth faster here; results are discarded. With a directory as the
last argument they are written there instead, to be compared: as CSV, or as JSON with their changes. `explain` instead of
a directory shows Flink's plan.
"""

import json
import sys
import tempfile
import time

from contenders.flink_join_queries import NUMBERS, QUERIES, WITH_CHANGES, views
from pyflink.table import EnvironmentSettings, Table, TableDescriptor, TableEnvironment

#: As many as Headrace reads before its clock begins.
WARMING_ROWS = 50_000


def main(kind: str, numbers: list[int], results: str | None) -> None:
    """Run the query and print what was measured as one line of JSON."""
    rows, keys, event_rate, cores = numbers
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in _settings(cores).items():
        tables.get_config().set(name, value)
    for last in [rows - 1] if results else [WARMING_ROWS - 1, rows - 1]:
        tables.execute_sql("DROP TABLE IF EXISTS numbers")
        tables.execute_sql(NUMBERS.format(event_rate=event_rate, last=last))
        for name, query in views(kind, keys, event_rate).items():
            tables.execute_sql(f"DROP VIEW IF EXISTS {name}")
            tables.execute_sql(f"CREATE VIEW {name} AS {query}")
        joined = tables.sql_query(QUERIES[kind])
        if results == "explain":
            print(joined.explain())
            return
        seconds = _seconds(joined, _sink(kind, results))
    print(json.dumps({"rows": rows, "seconds": seconds}))


def _seconds(query: Table, sink: TableDescriptor) -> float:
    """From RUNNING to FINISHED."""
    result = query.execute_insert(sink)
    client = result.get_job_client()
    while client.get_job_status().result().name in ("INITIALIZING", "CREATED"):
        time.sleep(0.02)
    began = time.monotonic()
    result.wait()
    return time.monotonic() - began


def _sink(kind: str, results: str | None) -> TableDescriptor:
    if results is None:
        return TableDescriptor.for_connector("blackhole").build()
    sink = TableDescriptor.for_connector("filesystem").option("path", f"file://{results}")
    return sink.format("debezium-json" if kind in WITH_CHANGES else "csv").build()


def _settings(cores: int) -> dict[str, str]:
    return {
        "parallelism.default": str(cores),
        "state.backend.type": "hashmap",
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.dir": "file://" + tempfile.mkdtemp(prefix="flink-checkpoints-"),
        "taskmanager.memory.managed.size": "1g",
        "pipeline.object-reuse": "true",
        "table.local-time-zone": "UTC",
    }


if __name__ == "__main__":
    main(sys.argv[1], [int(a) for a in sys.argv[2:6]], sys.argv[6] if sys.argv[6:] else None)
