"""Rows a second into PostgreSQL, exactly once: inserted, upserted as new ones, upserted over those that are there.

    python benchmarks/postgres.py --dsn postgresql://postgres@127.0.0.1/postgres --rows 1000000

One sink, one epoch after another as a job publishes them: staged rows are read from the spool, packed, copied, merged
and committed with their marker. Rows are narrow (a key, a text, a timestamp, two numbers) and come in no order. Without
`--dsn` a server of its own is started, and ended behind the run.
"""

import argparse
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from headrace._services import Postgres
from headrace.connectors.databases import PostgresSink
from headrace.connectors.databases.sink import Mode
from headrace.endpoints import Publisher, Receipt, SinkContext

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
        "price": pa.float64(),
        "amount": pa.int32(),
    }
)
START_US = 1_700_000_000_000_000
BAR = 100_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dsn")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=5, help="so many epochs of each kind")
    options = parser.parse_args()
    table = Table("into PostgreSQL", "rows", "epochs", "rows/s", "bar")
    with tempfile.TemporaryDirectory() as directory, server(options.dsn, Path(directory)) as dsn:
        for name, rate in measured(dsn, options.rows, options.epochs, Path(directory)):
            bar = f"{BAR:,}: {'met' if rate >= BAR else 'missed'}" if "upsert" in name else ""
            table.add_row(name, f"{options.rows:,}", str(options.epochs), f"{rate:,.0f}", bar)
    Console().print(table)


@contextmanager
def server(dsn: str | None, directory: Path) -> Iterator[str]:
    """The server that was named, or one of our own."""
    if dsn is not None:
        yield dsn
        return
    directory.chmod(0o755)
    own = Postgres(directory / "server")
    own.start()
    try:
        yield own.address
    finally:
        own.kill()


def measured(dsn: str, rows: int, epochs: int, directory: Path) -> Iterator[tuple[str, float]]:
    """What is done, and how many rows a second of it."""
    draws = np.random.default_rng(7)
    parts = np.array_split(draws.permutation(rows), epochs)
    again = np.array_split(draws.permutation(rows), epochs)
    # Half of the keys of each epoch are new ones.
    mixed = np.array_split(draws.permutation(rows) + rows // 2, epochs)
    yield "insert", run(dsn, "insert", [("insert", parts)], directory)["insert"]
    steps = [("upsert, new keys", parts), ("upsert, conflicting keys", again)]
    yield from run(dsn, "upsert", [*steps, ("upsert, half and half", mixed)], directory).items()


def run(
    dsn: str, mode: Mode, steps: list[tuple[str, list[npt.NDArray[np.int64]]]], directory: Path
) -> dict[str, float]:
    """One table, written to step by step; rows a second of each step."""
    name = f"headrace_benchmark_{secrets.token_hex(4)}"
    key = ("id",) if mode == "upsert" else ()
    sink = PostgresSink(dsn, table=name, mode=mode, key=key, create=True)
    context = SinkContext("benchmark", secrets.token_hex(8), "rows", SCHEMA, directory / name)
    publisher, rates, epoch = sink.publisher(context), {}, 0
    try:
        for step, parts in steps:
            receipts = [staged(sink, context, epoch + n, ids) for n, ids in enumerate(parts)]
            rates[step] = sum(map(len, parts)) / published(publisher, epoch, receipts)
            epoch += len(parts)
    finally:
        publisher.close()
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f'DROP TABLE "{name}"')
            connection.execute(
                "DELETE FROM headrace_markers WHERE incarnation = %s", (context.incarnation,)
            )
    return rates


def staged(
    sink: PostgresSink, context: SinkContext, epoch: int, ids: npt.NDArray[np.int64]
) -> list[Receipt]:
    """An epoch in the spool."""
    count = len(ids)
    columns = [
        pa.array(ids),
        pa.array([f"customer {n % 1000}" for n in range(count)]),
        pa.array(START_US + np.arange(count) * 1000, pa.timestamp("us", tz="UTC")),
        pa.array(np.arange(count) / 8),
        pa.array(np.arange(count), pa.int32()),
    ]
    stager = sink.stager(context, epoch, "task")
    stager.write(pa.record_batch(columns, schema=SCHEMA))
    return list(stager.close())


def published(publisher: Publisher, first: int, receipts: list[list[Receipt]]) -> float:
    """The seconds that publishing took."""
    began = time.perf_counter()
    for number, part in enumerate(receipts):
        publisher.publish(first + number, part)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
