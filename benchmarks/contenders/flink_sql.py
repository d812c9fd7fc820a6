"""Flink SQL counts and sums per key in a tumbling window. Runs in a virtual environment of its own.

The clock runs from the moment the job is RUNNING until it is FINISHED, so starting the JVM and the little
cluster inside it is not counted. State is checkpointed every second, incrementally where the backend can.
"""

import json
import sys
import tempfile
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

SOURCE = """
CREATE TABLE events (
  id BIGINT,
  account AS MOD(id * 7919 + 13, {keys}),
  amount AS MOD(id, 100),
  ts AS TO_TIMESTAMP_LTZ(id * 1000 / {event_rate}, 3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'datagen', 'rows-per-second' = '1000000000',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{last}'
)"""

SINK = """
CREATE TABLE results (account BIGINT, window_start TIMESTAMP(3), events BIGINT, total BIGINT)
WITH ('connector' = 'blackhole')"""

QUERY = """
INSERT INTO results
SELECT account, window_start, COUNT(*), SUM(amount)
FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY account, window_start, window_end"""


def main(rows: int, keys: int, event_rate: int, cores: int, backend: str) -> None:
    """Run the query once and print what was measured as one line of JSON."""
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in _settings(cores, backend).items():
        table.get_config().set(name, value)
    table.execute_sql(SOURCE.format(keys=keys, event_rate=event_rate, last=rows - 1))
    table.execute_sql(SINK)
    result = table.execute_sql(QUERY)
    client = result.get_job_client()
    while client.get_job_status().result().name in ("INITIALIZING", "CREATED"):
        time.sleep(0.02)
    began = time.monotonic()
    result.wait()
    print(json.dumps({"rows": rows, "seconds": time.monotonic() - began}))


def _settings(cores: int, backend: str) -> dict[str, str]:
    return {
        "parallelism.default": str(cores),
        "state.backend.type": backend,
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.dir": "file://" + tempfile.mkdtemp(prefix="flink-checkpoints-"),
        "taskmanager.memory.managed.size": "1g",
    }


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:5]]
    main(numbers[0], numbers[1], numbers[2], numbers[3], sys.argv[5])
