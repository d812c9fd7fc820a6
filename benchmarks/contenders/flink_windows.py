"""Flink counts and sums per key in one kind of window. Runs in a virtual environment of its own.

    python flink_windows.py KIND ROWS KEYS EVENT_RATE CORES [DIRECTORY]

A short job warms the JVM up. Then the clock runs from the moment the job is RUNNING until it is FINISHED, so starting the
JVM and the little cluster inside it is not counted. State is on the heap and checkpointed every second; results are discarded. With a
directory as the last argument they are written there as CSV instead, to be compared.

SQL has no windows by number of rows. The nearest that Flink runs without Python is the Table API's `Tumble` over rows
in processing time, which is what `count` is here.
"""

import json
import sys
import tempfile
import time

from pyflink.table import EnvironmentSettings, Table, TableEnvironment
from pyflink.table.expressions import col, row_interval
from pyflink.table.window import Tumble

SOURCE = """
CREATE TABLE events (
  id BIGINT,
  account AS {account},
  amount AS MOD(id, 100),
  ts AS TO_TIMESTAMP_LTZ(1767225600000 + id * 1000 / {event_rate}, 3),
  arrived AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'datagen', 'rows-per-second' = '1000000000',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{last}'
)"""

EVERY_KEY_IN_TURN = "MOD(id * 7919 + 13, {keys})"
#: Half of the keys are at work, and which half moves on round all of them in ten seconds of event time.
KEYS_COME_AND_GO = (
    "MOD(MOD(id * 7919 + 13, {keys} / 2) + id * {keys} / (10 * {event_rate}), {keys})"
)

GROUPED = """
SELECT account, window_start, window_end, COUNT(*) AS events, SUM(amount) AS total
FROM TABLE({windows})
GROUP BY account, window_start, window_end"""

QUERIES = {
    "hopping": GROUPED.format(
        windows="HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
    ),
    "session": GROUPED.format(
        windows="SESSION(TABLE events PARTITION BY account, DESCRIPTOR(ts), INTERVAL '3' SECOND)"
    ),
    "cumulating": GROUPED.format(
        windows="CUMULATE(TABLE events, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
    ),
    "look-back": """
SELECT account, ts, amount, COUNT(*) OVER behind AS events, SUM(amount) OVER behind AS total
FROM events
WINDOW behind AS (
  PARTITION BY account ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW)""",
}
COUNT_ROWS = 5
#: As many as Headrace reads before its clock begins.
WARMING_ROWS = 50_000

SINK = """
CREATE TABLE results (account BIGINT, {own}, events BIGINT, total BIGINT) WITH ({where})"""
#: What a kind's results have between the key and the aggregates.
OWN = {"look-back": "ts TIMESTAMP_LTZ(3), amount BIGINT", "count": ""}
WINDOW_BOUNDS = "window_start TIMESTAMP(3), window_end TIMESTAMP(3)"


def main(kind: str, numbers: list[int], results: str | None) -> None:
    """Run the query and print what was measured as one line of JSON."""
    rows, keys, event_rate, cores = numbers
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in _settings(cores).items():
        tables.get_config().set(name, value)
    account = (KEYS_COME_AND_GO if kind == "session" else EVERY_KEY_IN_TURN).format(
        keys=keys, event_rate=event_rate
    )
    tables.execute_sql(_sink(kind, results))
    for last in [rows - 1] if results else [WARMING_ROWS - 1, rows - 1]:
        tables.execute_sql("DROP TABLE IF EXISTS events")
        tables.execute_sql(SOURCE.format(account=account, event_rate=event_rate, last=last))
        seconds = _seconds(_query(tables, kind))
    print(json.dumps({"rows": rows, "seconds": seconds}))


def _seconds(query: Table) -> float:
    """From RUNNING to FINISHED."""
    result = query.execute_insert("results")
    client = result.get_job_client()
    while client.get_job_status().result().name in ("INITIALIZING", "CREATED"):
        time.sleep(0.02)
    began = time.monotonic()
    result.wait()
    return time.monotonic() - began


def _query(tables: TableEnvironment, kind: str) -> Table:
    if kind != "count":
        return tables.sql_query(QUERIES[kind])
    windows = Tumble.over(row_interval(COUNT_ROWS)).on(col("arrived")).alias("w")
    return (
        tables.from_path("events")
        .window(windows)
        .group_by(col("account"), col("w"))
        .select(col("account"), col("id").count.alias("events"), col("amount").sum.alias("total"))
    )


def _sink(kind: str, results: str | None) -> str:
    where = "'connector' = 'blackhole'"
    if results is not None:
        where = f"'connector' = 'filesystem', 'path' = 'file://{results}', 'format' = 'csv'"
    sink = SINK.format(own=OWN.get(kind, WINDOW_BOUNDS), where=where)
    return sink.replace(", ,", ",")


def _settings(cores: int) -> dict[str, str]:
    return {
        "parallelism.default": str(cores),
        "state.backend.type": "hashmap",
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.dir": "file://" + tempfile.mkdtemp(prefix="flink-checkpoints-"),
        "taskmanager.memory.managed.size": "1g",
        "table.local-time-zone": "UTC",
    }


if __name__ == "__main__":
    main(sys.argv[1], [int(a) for a in sys.argv[2:6]], sys.argv[6] if sys.argv[6:] else None)
