"""Spark's own Kafka connector, which is at least once: from Kafka to Kafka, or reading and decoding alone.

    python spark_kafka.py count|count-millis|copy BROKER TOPIC RESULTS CORES JARS
    python spark_kafka.py from_json|arrow BROKER TOPIC ROWS CORES JARS

`count` filters and counts per auction in tumbling windows, `copy` filters and picks columns; times are texts, or numbers in `count-millis`. These never end, and whoever watches the results ends
them. The other two read and decode all columns into a sink that does nothing, with Spark's `from_json` or with `pyarrow` in its Python workers,
and print what they measured: the clock runs from the end of the first batch, whose rows are not counted, to the end of the last.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.json
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BID = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP"
#: About a second's worth: results come as often as Flink's.
BATCH_ROWS = {"from_json": 500_000, "arrow": 500_000}
RESULTS_BATCH_ROWS = 250_000


def main(job: str, broker: str, topic: str, target: str, cores: int, jars: str) -> None:
    """Run the job."""
    spark = _session(cores, jars)
    spark.sparkContext.setLogLevel("ERROR")
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", BATCH_ROWS.get(job, RESULTS_BATCH_ROWS))
        .load()
    )
    if job == "copy":
        _write(_copied(messages), broker, target)
    elif job in ("count", "count-millis"):
        bids = _decoded(messages) if job == "count" else _with_numbers(messages)
        _write(_counted(bids), broker, target)
    else:
        _measure(_decoded(messages) if job == "from_json" else _arrow(messages), int(target))


def _decoded(messages: DataFrame, schema: str = BID) -> DataFrame:
    value = f.from_json(f.col("value").cast("string"), schema).alias("bid")
    return messages.select(value).select("bid.*")


def _arrow(messages: DataFrame) -> DataFrame:
    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fields = [(n, pa.int64()) for n in ("auction", "bidder", "price")]
        texts = [(n, pa.string()) for n in ("channel", "url")]
        schema = pa.schema([*fields, *texts, ("ts", pa.timestamp("us", tz="UTC"))])
        options = pyarrow.json.ParseOptions(explicit_schema=schema)
        for batch in batches:
            lines = b"\n".join(batch.column(0).to_pylist())
            read = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
            yield from pyarrow.json.read_json(pa.BufferReader(lines), read, options).to_batches()

    return messages.select("value").mapInArrow(decode, BID)


def _with_numbers(messages: DataFrame) -> DataFrame:
    bids = _decoded(messages, BID.replace("ts TIMESTAMP", "ts BIGINT"))
    return bids.withColumn("ts", f.timestamp_millis("ts"))


def _counted(bids: DataFrame) -> DataFrame:
    return (
        bids.withWatermark("ts", "1 second")
        .where("price >= 100")
        .groupBy(f.window("ts", "10 seconds"), "auction")
        .agg(f.count("*").alias("bids"))
        .select("auction", f.col("window.start").alias("window_start"), "bids")
    )


def _copied(messages: DataFrame) -> DataFrame:
    decoded = _decoded(messages, f"{BID}, sent BIGINT")
    return decoded.where("price >= 100").select("auction", "price", "sent")


def _write(results: DataFrame, broker: str, topic: str) -> None:
    value = f.to_json(f.struct("*")).alias("value")
    query = (
        results.select(f.col("auction").cast("string").alias("key"), value)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("topic", topic)
        .option("checkpointLocation", tempfile.mkdtemp(prefix="spark-checkpoint-"))
        .outputMode("append")
        .start()
    )
    query.awaitTermination()


def _measure(decoded: DataFrame, rows: int) -> None:
    query = (
        decoded.writeStream.format("noop")
        .option("checkpointLocation", tempfile.mkdtemp(prefix="spark-checkpoint-"))
        .start()
    )
    began, first = 0.0, 0
    seen = 0
    while seen < rows:
        time.sleep(0.01)
        if (error := query.exception()) is not None:
            raise RuntimeError(str(error))
        seen = sum(p["numInputRows"] for p in query.recentProgress)
        if seen and not first:
            began, first = time.monotonic(), seen
    print(json.dumps({"rows": seen - first, "seconds": time.monotonic() - began}))
    sys.stdout.flush()
    os._exit(0)


def _session(cores: int, jars: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master(f"local[{cores}]").appName("spark-kafka")
    for name, value in {
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": cores,
        "spark.sql.execution.arrow.maxRecordsPerBatch": 20_000,
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
    words = sys.argv[1:]
    main(words[0], words[1], words[2], words[3], int(words[4]), words[5])
