"""A Spark session of the user's own carries a job, keeps its settings and outlives it."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pathlib import Path
from pyspark.sql import SparkSession
import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource

root = Path(sys.argv[1])
session = (
    SparkSession.builder.master("local[2,4]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "7")
    .getOrCreate()
)
env = hr.Environment("brought", checkpoint=root / "state", **({"session": session} if sys.argv[2] == "given" else {}))
sink = MemorySink()
env.from_source(MemorySource([{"n": n} for n in range(10)]), uid="numbers").sink_to(sink, uid="out")
assert env.execute().finished
assert sorted(row["n"] for row in sink.to_pylist()) == list(range(10))
assert session.conf.get("spark.sql.shuffle.partitions") == "7"
assert session.range(3).count() == 3
print("carried")
"""


def carried(root: Path, how: str) -> str:
    script = root / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, str(script), str(root), how],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return ended.stdout + ("" if ended.returncode == 0 else ended.stderr)


def test_session_that_is_given_carries_the_job(tmp_path: Path) -> None:
    assert carried(tmp_path, "given").splitlines()[-1] == "carried"


def test_session_that_is_there_is_found(tmp_path: Path) -> None:
    assert carried(tmp_path, "found").splitlines()[-1] == "carried"
