"""Jars that contenders need, by their Maven names: fetched once with the Ivy that PySpark brings, then from a cache."""

import subprocess
import sys
from pathlib import Path

__all__ = ["FLINK_KAFKA", "SPARK_KAFKA", "fetched"]

CACHE = Path.home() / ".cache" / "headrace" / "benchmark-jars"
#: Made for Flink 2.2, the newest there is; it holds its own Kafka client.
FLINK_KAFKA = ["org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"]
#: There is none for Spark 4.3 yet. This is what loads on it.
SPARK_KAFKA = [
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.1",
]


def fetched(names: list[str]) -> list[Path]:
    """Where these jars lie, without what they depend on."""
    return [_fetched(*name.split(":")) for name in names]


def _fetched(group: str, name: str, version: str) -> Path:
    jar = CACHE / f"{name}-{version}.jar"
    if not jar.exists():
        print(f"fetching {jar.name} (once)", file=sys.stderr, flush=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        what = ["-dependency", group, name, version, "-notransitive", "-types", "jar", "bundle"]
        where = ["-cache", str(CACHE / "ivy"), "-retrieve", str(CACHE / "[originalname].[ext]")]
        command = ["java", "-cp", str(_ivy()), "org.apache.ivy.Main", *what, *where]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if not jar.exists():
            sys.exit(f"{group}:{name}:{version} is not to be had:\n{done.stdout}{done.stderr}")
    return jar


def _ivy() -> Path:
    import pyspark

    return next(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
