"""Spark's own `groupBy(window)` counts and sums per key in a tumbling window.

The source is Spark's `rate-micro-batch`: a million rows an epoch, generated in the JVM. RocksDB state, a
shuffle partition for each core, results discarded. The clock runs from the query's start to the end of
the last batch.
"""

import json
import os
import sys
import tempfile
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BATCH_ROWS = 1_000_000


def main(rows: int, keys: int, event_rate: int, cores: int) -> None:
    """Run the query once and print what was measured as one line of JSON."""
    spark = _session(cores)
    spark.sparkContext.setLogLevel("ERROR")
    batch = min(rows, BATCH_ROWS)
    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", batch)
        .option("numPartitions", cores)
        .load()
    )
    events = numbers.select(
        ((f.col("value") * 7919 + 13) % keys).alias("account"),
        (f.col("value") % 100).alias("amount"),
        f.timestamp_micros((f.col("value") * 1_000_000 / event_rate).cast("long")).alias("ts"),
    )
    counted = (
        events.withWatermark("ts", "5 seconds")
        .groupBy(f.window("ts", "10 seconds"), "account")
        .agg(f.count("*").alias("events"), f.sum("amount").alias("total"))
    )
    began = time.monotonic()
    query = (
        counted.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", tempfile.mkdtemp(prefix="spark-checkpoint-"))
        .start()
    )
    while (query.lastProgress or {"batchId": -1})["batchId"] < rows // batch - 1:
        time.sleep(0.02)
        if (error := query.exception()) is not None:
            raise RuntimeError(str(error))
    print(json.dumps({"rows": rows // batch * batch, "seconds": time.monotonic() - began}))
    sys.stdout.flush()
    # Stopping a query of ten million rows of state takes minutes, and nothing of it is measured.
    os._exit(0)


def _session(cores: int) -> SparkSession:
    builder = SparkSession.Builder().master(f"local[{cores}]").appName("spark-native")
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
    main(*(int(a) for a in sys.argv[1:5]))
