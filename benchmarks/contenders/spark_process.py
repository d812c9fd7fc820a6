"""PySpark's `transformWithState` on rows, with a value and a timer for each row.

    python spark_process.py ROWS KEYS EVENT_RATE CORES [DIRECTORY]

The source is Spark's `rate-micro-batch`, generated in the JVM. RocksDB state with changelog checkpoints, a shuffle partition for each
core, results discarded. The clock runs from the end of the first batch, when Spark's Python workers are up, to the end of
the last one. With a directory the results are written there as Parquet, to be compared, and batches go on until every
timer of the rows has fired: Spark's source never ends, so the last timers need later rows.
"""

# ruff: noqa: N802, N803 - the names are Spark's

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FIRST_US = 1_767_225_600_000_000
AHEAD_MS = 3_000
BATCHES = 8
#: Fewer where nothing is measured.
BATCHES_TO_COMPARE = 3


class Totals(StatefulProcessor):
    """Adds up a key's amounts until a timer tells them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.total = handle.getValueState("total", "total LONG")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        for row in rows:
            before = self.total.get()
            self.total.update(((before[0] if before else 0) + row.amount,))
            self.handle.registerTimer(row.at_ms + AHEAD_MS)
        yield from ()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        at_ms = expiredTimerInfo.getExpiryTimeInMs()
        total = self.total.get()
        yield Row(account=key[0], at_ms=at_ms, total=total[0] if total else 0)
        self.total.clear()

    def close(self) -> None:
        """Nothing is open."""


def main(numbers: list[int], results: str | None) -> None:
    """Run the query and print what was measured as one line of JSON."""
    # Otherwise Spark takes whichever python3 is found first.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    rows, keys, event_rate, cores = numbers
    spark = _session(cores)
    spark.sparkContext.setLogLevel("ERROR")
    batch = max(1, rows // (BATCHES if results is None else BATCHES_TO_COMPARE))
    told = (
        _events(spark, batch, keys, event_rate, cores)
        .groupBy("account")
        .transformWithState(Totals(), "account LONG, at_ms LONG, total LONG", "append", "EventTime")
    )
    out = told.writeStream.format("noop" if results is None else "parquet").outputMode("append")
    if results is not None:
        out = out.option("path", results)
    query = out.option("checkpointLocation", tempfile.mkdtemp(prefix="spark-checkpoint-")).start()
    _await(query, 0)
    began = time.monotonic()
    # A timer needs the watermark of the batch before, which is a second behind.
    later = 0 if results is None else 2 + (AHEAD_MS + 1_000) * event_rate // 1_000 // batch
    _await(query, rows // batch - 1 + later)
    measured = rows // batch * batch - batch
    print(json.dumps({"rows": measured, "seconds": time.monotonic() - began}))
    sys.stdout.flush()
    # Stopping a query takes its time, and nothing of it is measured.
    os._exit(0)


def _await(query: Any, batch: int) -> None:
    while (query.lastProgress or {"batchId": -1})["batchId"] < batch:
        time.sleep(0.02)
        if (error := query.exception()) is not None:
            raise RuntimeError(str(error))


def _events(spark: SparkSession, batch: int, keys: int, event_rate: int, cores: int) -> Any:
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", batch)
    number = f.col("value")
    at_ms = f.lit(FIRST_US // 1_000) + f.floor(number * 1_000 / event_rate)
    return (
        numbers.option("numPartitions", cores)
        .load()
        .select(
            ((number * 7919 + 13) % keys).alias("account"),
            (number % 100).alias("amount"),
            at_ms.cast("long").alias("at_ms"),
            f.timestamp_millis(at_ms.cast("long")).alias("ts"),
        )
        .withWatermark("ts", "1 second")
    )


def _session(cores: int) -> SparkSession:
    builder = SparkSession.Builder().master(f"local[{cores}]").appName("spark-process")
    for name, value in {
        "spark.sql.shuffle.partitions": cores,
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
    }.items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()


if __name__ == "__main__":
    main([int(a) for a in sys.argv[1:5]], sys.argv[5] if sys.argv[5:] else None)
