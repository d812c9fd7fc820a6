"""Headrace from Kafka to Kafka, exactly once: every epoch is a checkpoint and is published in transactions. Or reading and decoding alone.

    python headrace_kafka.py count|count-millis|copy BROKER TOPIC RESULTS CORES
    python headrace_kafka.py reading BROKER TOPIC ROWS CORES

`count` filters and counts per auction in tumbling windows, `copy` filters and picks columns; times are texts, or numbers in `count-millis`. These never end, and whoever watches the results ends
them. `reading` reads and decodes all columns up to the end of the topic and discards the rows; it prints what it measured: the clock
runs from the end of epoch 0, whose rows are not counted, until the job has ended.
"""

import json
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from contenders.discard import Discard

import headrace as hr
from headrace.connectors import kafka
from headrace.formats.messages import Json
from headrace.stream import Stream

BID = pa.schema(
    {
        "auction": pa.int64(),
        "bidder": pa.int64(),
        "price": pa.int64(),
        "channel": pa.string(),
        "url": pa.string(),
        "ts": pa.timestamp("us", tz="UTC"),
    }
)
SENT_BID = BID.append(pa.field("sent", pa.int64()))
SECOND = timedelta(seconds=1)
PRICE = 100


def main(job: str, broker: str, topic: str, target: str, cores: int) -> None:
    """Run the job."""
    home = Path(tempfile.mkdtemp(prefix="headrace-benchmark-"))
    env = hr.Environment(
        "benchmark",
        checkpoint=home / "checkpoint",
        shards=cores,
        master=f"local[{cores}]",
        restart=hr.Restart.never(),
    )
    if job == "reading":
        _read(env, broker, topic, int(target))
        return
    if job == "copy":
        made = _copied(env, broker, topic)
    else:
        made = _counted(env, broker, topic, Json("iso" if job == "count" else "millis"))
    made.sink_to(kafka.KafkaSink(broker, topic=target, key="auction"), uid="results")
    env.start().wait()


def _counted(env: hr.Environment, broker: str, topic: str, format: Json) -> Stream:
    return (
        env.from_source(
            kafka.KafkaSource(broker, topics=topic, schema=BID, format=format),
            watermarks=hr.WatermarkStrategy.bounded_out_of_orderness(SECOND).with_timestamps("ts"),
            uid="bids",
        )
        .filter(hr.col("price") >= PRICE, uid="dear")
        .key_by("auction")
        .window(hr.windows.Tumbling(10 * SECOND))
        .aggregate(bids=hr.count(), uid="per-auction")
    )


def _copied(env: hr.Environment, broker: str, topic: str) -> Stream:
    bids = env.from_source(kafka.KafkaSource(broker, topics=topic, schema=SENT_BID), uid="bids")
    dear = bids.filter(hr.col("price") >= PRICE, uid="dear")
    return dear.select("auction", "price", "sent", uid="picked")


def _read(env: hr.Environment, broker: str, topic: str, rows: int) -> None:
    source = kafka.KafkaSource(broker, topics=topic, schema=BID, stop="latest")
    env.from_source(source, uid="bids").sink_to(Discard(), uid="nowhere")
    job = env.start()
    job.await_epoch(0)
    began, before = time.monotonic(), job.summary.rows
    job.wait()
    print(json.dumps({"rows": rows - before, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[0], words[1], words[2], words[3], int(words[4]))
