"""User code that misbehaves in a worker of Spark: a typed error, nothing half-done; or a dead letter, and it goes on."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError

ROWS = 20
#: In the second epoch, so that the first one has come out when it is met.
BAD = 12
NUMBER = {"n": int}
ODD = hr.OutputTag("odd", NUMBER)


def raises(_: Any) -> None:
    raise KeyError("no such thing")


def exits(_: Any) -> None:
    sys.exit(0)


def hangs(_: Any) -> None:
    time.sleep(300)


def mutates(row: Any) -> None:
    row.n = 99


class Doubtful(hr.ProcessFunction):
    """Fails on one row, behind what it has yielded for it."""

    odd = ODD

    def __init__(self, misdeed: Callable[[Any], None], log: Path | None = None) -> None:
        self.misdeed = misdeed
        self.log = log

    def open(self, ctx: Any) -> None:
        self._note("open")

    def close(self) -> None:
        self._note("close")

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        print("a line from", value)  # noqa: T201 - as users do
        print("and another", file=sys.stderr)  # noqa: T201
        yield value
        if value.n % 2:
            ctx.output(ODD, value)
        ctx.metrics.counter("rows").inc()
        if value.n == BAD:
            self.misdeed(value)

    def _note(self, what: str) -> None:
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(f"{what} {os.getpid()}\n")


def job(root: Path, function: Any, **said: Any) -> tuple[hr.Environment, dict[str, MemorySink]]:
    """The rows of two epochs, moved to another shard first: the function runs on both sides of a shuffle."""
    env = hr.Environment(
        "doubtful",
        checkpoint=root / "state",
        epochs=hr.Epochs(rows=10),
        restart=hr.Restart.never(),
        shards=2,
    )
    sinks = {name: MemorySink() for name in ("out", "odd", "dead")}
    rows = env.from_source(MemorySource([{"n": n} for n in range(ROWS)], NUMBER), uid="in")
    made = rows.rebalance(uid="moved").process(function, schema=NUMBER, uid="it", **said)
    made.sink_to(sinks["out"], uid="out")
    made.side_output(ODD).sink_to(sinks["odd"], uid="odd")
    if said.get("on_error") == "dead_letter":
        made.errors.sink_to(sinks["dead"], uid="dead")
    return env, sinks


def numbers(sink: MemorySink) -> list[int]:
    return sorted(row["n"] for row in sink.to_pylist())


@pytest.mark.parametrize(
    ("misdeed", "told"),
    [
        (raises, "KeyError: 'no such thing'"),
        (exits, "SystemExit: 0"),
        (mutates, "AttributeError"),
        (hangs, "took longer than its limit of 0:00:01"),
    ],
)
def test_a_misdeed_is_a_typed_error_and_nothing_is_half_done(
    tmp_path: Path, misdeed: Callable[[Any], None], told: str
) -> None:
    env, sinks = job(tmp_path, Doubtful(misdeed), limit=timedelta(seconds=1))
    with pytest.raises(UserCodeError) as caught:
        env.execute()
    message = str(caught.value)
    assert told in message
    assert "step 'it'" in message
    assert "row Row(n=12)" in message
    assert f"in {misdeed.__name__}" in message
    assert numbers(sinks["out"]) == list(range(10))
    assert numbers(sinks["odd"]) == list(range(1, 10, 2))


@pytest.mark.parametrize("misdeed", [raises, exits, hangs])
def test_a_job_with_dead_letters_goes_on(tmp_path: Path, misdeed: Callable[[Any], None]) -> None:
    env, sinks = job(
        tmp_path, Doubtful(misdeed), limit=timedelta(seconds=1), on_error="dead_letter"
    )
    handle = env.start()
    assert handle.wait(timeout=120).finished
    assert numbers(sinks["out"]) == [n for n in range(ROWS) if n != BAD]
    assert numbers(sinks["odd"]) == list(range(1, ROWS, 2))
    [letter] = sinks["dead"].to_pylist()
    assert (letter["uid"], letter["payload"]) == ("it", '{"n": 12}')
    assert f"in {misdeed.__name__}" in letter["traceback"]
    assert handle.metrics["it"]["rows"] == ROWS


def test_a_function_is_opened_once_in_each_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    env, sinks = job(tmp_path, Doubtful(lambda _: None, log))
    assert env.execute().finished
    assert numbers(sinks["out"]) == list(range(ROWS))
    opened = [line for line in log.read_text().splitlines() if line.startswith("open")]
    assert opened
    assert len(opened) == len(set(opened))


@pytest.mark.parametrize("misdeed", [raises, exits])
def test_where_rows_are_read_it_is_the_same(tmp_path: Path, misdeed: Callable[[Any], None]) -> None:
    def doubtful(row: Any) -> Any:
        if row.n == BAD:
            misdeed(row)
        return row

    env = hr.Environment(
        "doubtful",
        checkpoint=tmp_path / "state",
        epochs=hr.Epochs(rows=10),
        restart=hr.Restart.never(),
    )
    sink = MemorySink()
    rows = env.from_source(MemorySource([{"n": n} for n in range(ROWS)], NUMBER), uid="in")
    rows.map(doubtful, schema=NUMBER, uid="it").sink_to(sink, uid="out")
    with pytest.raises(UserCodeError, match=r"step 'it'[\s\S]*offset 12\n  row Row\(n=12\)"):
        env.execute()
    assert numbers(sink) == list(range(10))


PROGRAM = """
import sys
from pathlib import Path
from tests.spark.test_user_code import Doubtful, job

root = Path(sys.argv[1])
env, _ = job(root, Doubtful(print, root / "log"))
env.execute()
"""


def test_workers_close_what_they_opened_when_the_program_ends(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        timeout=300,
    )
    # Spark kills a worker that has waited for a minute, so on a slow machine not all come to their end.
    lines: list[str] = []
    for _ in range(300):
        lines = (tmp_path / "log").read_text().splitlines()
        if any(line.startswith("close") for line in lines):
            break
        time.sleep(0.1)
    closed = [line.split()[1] for line in lines if line.startswith("close")]
    assert closed
    assert len(closed) == len(set(closed))
    assert set(closed) <= {line.split()[1] for line in lines if line.startswith("open")}
