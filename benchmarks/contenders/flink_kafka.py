"""Flink SQL from Kafka to Kafka, exactly once: checkpoints every second, a transaction each. Runs in a virtual environment of its own.

    python flink_kafka.py count|count-millis|copy BROKER TOPIC RESULTS CORES JARS

`count` filters and counts per auction in tumbling windows, `copy` filters and picks columns; times are texts, or numbers in `count-millis`. The job never ends; whoever watches the results ends it.
State is on the heap; objects are reused, which makes Flink faster and is safe in SQL.
"""

import sys
import tempfile

from pyflink.table import EnvironmentSettings, TableEnvironment

BIDS = """
CREATE TABLE bids (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, sent BIGINT, {time},
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{broker}',
  'properties.group.id' = 'benchmark-flink', 'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'
)"""

RESULTS = """
CREATE TABLE results (auction BIGINT, {own}) WITH (
  'connector' = 'kafka', 'topic' = '{results}', 'properties.bootstrap.servers' = '{broker}',
  'key.format' = 'raw', 'key.fields' = 'auction',
  'value.format' = 'json', 'value.json.timestamp-format.standard' = 'ISO-8601',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{results}',
  'properties.transaction.timeout.ms' = '600000'
)"""

ISO = "ts TIMESTAMP_LTZ(3)"
MILLIS = "`ts` BIGINT, happened AS TO_TIMESTAMP_LTZ(`ts`, 3)"
OWN = {
    "count": "window_start TIMESTAMP(3), bids BIGINT",
    "count-millis": "window_start TIMESTAMP(3), bids BIGINT",
    "copy": "price BIGINT, sent BIGINT",
}
QUERIES = {
    "count": """
INSERT INTO results
SELECT auction, window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND))
WHERE price >= 100
GROUP BY auction, window_start, window_end""",
    "count-millis": """
INSERT INTO results
SELECT auction, window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(happened), INTERVAL '10' SECOND))
WHERE price >= 100
GROUP BY auction, window_start, window_end""",
    "copy": "INSERT INTO results SELECT auction, price, sent FROM bids WHERE price >= 100",
}


def main(job: str, broker: str, topic: str, results: str, cores: int, jars: str) -> None:
    """Run until ended."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in _settings(cores, jars).items():
        tables.get_config().set(name, value)
    bids = BIDS.format(topic=topic, broker=broker, time=ISO)
    if job == "count-millis":
        bids = bids.replace("FOR ts AS ts", "FOR happened AS happened").replace(ISO, MILLIS)
    tables.execute_sql(bids)
    tables.execute_sql(RESULTS.format(own=OWN[job], results=results, broker=broker))
    tables.execute_sql(QUERIES[job]).wait()


def _settings(cores: int, jars: str) -> dict[str, str]:
    return {
        "parallelism.default": str(cores),
        "pipeline.jars": ";".join(f"file://{jar}" for jar in jars.split(",")),
        "pipeline.object-reuse": "true",
        "state.backend.type": "hashmap",
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.dir": "file://" + tempfile.mkdtemp(prefix="flink-checkpoints-"),
        "taskmanager.memory.managed.size": "1g",
        "table.local-time-zone": "UTC",
    }


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[0], words[1], words[2], words[3], int(words[4]), words[5])
