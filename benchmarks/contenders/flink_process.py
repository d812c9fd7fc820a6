"""PyFlink's keyed process function with a value and a timer for each row. Runs in a virtual environment of its own.

    python flink_process.py ROWS KEYS EVENT_RATE CORES [DIRECTORY]

Python runs in thread mode, inside the JVM; state is on the heap and checkpointed every 2 s; results are discarded. With a directory
they are written there as CSV, to be compared. A short job warms JVM and Python up. Then the clock runs from the moment
the job is RUNNING until it is FINISHED: the end of the input makes all timers fire that are left.
"""

import json
import os
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from pyflink.common import Configuration, Row, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.table import DataTypes, Schema, StreamTableEnvironment

SOURCE = """
CREATE TABLE events (
  id BIGINT,
  account AS MOD(id * 7919 + 13, {keys}),
  amount AS MOD(id, 100),
  ts AS TO_TIMESTAMP_LTZ(1767225600000 + id * 1000 / {event_rate}, 3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'datagen', 'rows-per-second' = '1000000000',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{last}'
)"""
SINK = "CREATE TABLE results (account BIGINT, at_ms BIGINT, total BIGINT) WITH ({where})"
AHEAD_MS = 3_000
WARMING_ROWS = 5_000


class Totals(KeyedProcessFunction):  # type: ignore[misc]
    """Adds up a key's amounts until a timer tells them."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.total.update((self.total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + AHEAD_MS)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        yield Row(ctx.get_current_key(), timestamp, self.total.value() or 0)
        self.total.clear()


def main(numbers: list[int], results: str | None) -> None:
    """Run the job and print what was measured as one line of JSON."""
    rows, keys, event_rate, cores = numbers
    # The interpreter inside the JVM does not know of virtual environments.
    packages = [sysconfig.get_paths()["purelib"], *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(packages)
    for last in [rows - 1] if results else [WARMING_ROWS - 1, rows - 1]:
        seconds = _seconds(last, keys, event_rate, cores, results)
    print(json.dumps({"rows": rows, "seconds": seconds}))


def _seconds(last: int, keys: int, event_rate: int, cores: int, results: str | None) -> float:
    """From RUNNING to FINISHED."""
    env = StreamExecutionEnvironment.get_execution_environment(_settings(cores))
    tables = StreamTableEnvironment.create(env)
    tables.get_config().set("table.local-time-zone", "UTC")
    tables.execute_sql(SOURCE.format(keys=keys, event_rate=event_rate, last=last))
    where = "'connector' = 'blackhole'"
    if results is not None:
        where = f"'connector' = 'filesystem', 'path' = 'file://{results}', 'format' = 'csv'"
    tables.execute_sql(SINK.format(where=where))
    events = tables.to_data_stream(tables.sql_query("SELECT account, amount, ts FROM events"))
    kind = Types.ROW_NAMED(["account", "at_ms", "total"], [Types.LONG()] * 3)
    told = events.key_by(lambda row: row[0], key_type=Types.LONG()).process(Totals(), kind)
    schema = Schema.new_builder().column("account", DataTypes.BIGINT())
    schema = schema.column("at_ms", DataTypes.BIGINT()).column("total", DataTypes.BIGINT())
    result = tables.from_data_stream(told, schema.build()).execute_insert("results")
    client = result.get_job_client()
    while client.get_job_status().result().name in ("INITIALIZING", "CREATED"):
        time.sleep(0.02)
    began = time.monotonic()
    result.wait()
    return time.monotonic() - began


def _settings(cores: int) -> Configuration:
    settings = Configuration()
    for name, value in {
        "parallelism.default": str(cores),
        "python.execution-mode": "thread",
        "python.executable": sys.executable,
        "restart-strategy.type": "none",
        "state.backend.type": "hashmap",
        "execution.checkpointing.interval": "2s",
        "execution.checkpointing.dir": "file://" + tempfile.mkdtemp(prefix="flink-checkpoints-"),
        "taskmanager.memory.managed.size": "1g",
    }.items():
        settings.set_string(name, value)
    return settings


if __name__ == "__main__":
    main([int(a) for a in sys.argv[1:5]], sys.argv[5] if sys.argv[5:] else None)
