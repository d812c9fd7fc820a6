"""Shards must land on distinct partitions, by Spark's own hash."""

from pathlib import Path

import pytest
from pyspark.sql import functions as F

from headrace._spark.session import open_spark
from headrace._spark.shard_ids import shard_ids


@pytest.mark.parametrize("shards", [1, 2, 3, 8, 128])
def test_spark_puts_each_shard_on_a_partition_of_its_own(shards: int, tmp_path: Path) -> None:
    spark = open_spark("ids", master=None, session=None, log=tmp_path / "log", verbose=False)
    ids = [(number,) for number in shard_ids(shards)]
    frame = spark.session.createDataFrame(ids, "id int")
    placed = frame.select(F.pmod(F.hash("id"), F.lit(shards))).collect()
    assert [row[0] for row in placed] == list(range(shards))
