"""`check_sink`: a sink against the whole kill table."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.endpoints import Sink
from headrace.testing.conformance.scenarios import Bench, scenarios
from headrace.testing.conformance.script import MakeRow, Script, example_row
from headrace.testing.conformance.travel import travelled
from headrace.testing.memory_disk import memory_disk

__all__ = ["SinkReport", "check_sink"]

_SCHEMA = pa.schema([("key", pa.string()), ("number", pa.int64()), ("note", pa.string())])
#: Behind so many failures, or so many scenarios after the first, the rest tells nothing new.
_FAILURES = 3
_MORE = 10
_ROWS_TOLD = 4


@dataclass(frozen=True)
class SinkReport:
    """What a sink has passed."""

    sink: str
    scenarios: tuple[str, ...]
    seconds: float


def check_sink(
    sink: Sink | Callable[[], Sink],
    read: Callable[[], Sequence[Any] | pa.Table],
    *,
    schema: pa.Schema | None = None,
    row: MakeRow | None = None,
    key: str | None = "key",
    ordered: bool = True,
    inside: int = 24,
    patience: timedelta = timedelta(seconds=20),
    seed: int = 0,
) -> SinkReport:
    """Prove that a sink shows every row of durable epochs once, and no other, whatever is killed.

    A small job with two such sinks is run some hundred times on real commit code: killed (SIGKILL) at every point of the
    protocol, between lines of the sink's own methods and at random instants, started again, hung and woken up late, its
    tasks lost, its checkpoint deleted. `read` returns all rows that are visible outside, as dicts or an Arrow table;
    in the order in which they came, unless `ordered=False`. Rows have the columns key, number and note, or are what
    `row(number)` makes, different for each number, with `schema` and the `key` in whose order they must stay.
    `inside` is between how many lines of `publish` at most it is killed and hung; of other methods a third of that.
    Raises `AssertionError` that says which rows, and where.

        check_sink(MySink("orders.db"), read=lambda: rows_in("orders.db"))
    """
    began = time.monotonic()
    checked = sink if isinstance(sink, Sink) else sink()
    columns = schema or _SCHEMA
    travelled(checked).validate(columns)
    with tempfile.TemporaryDirectory(prefix="headrace-check-", dir=memory_disk()) as directory:
        script = Script(row or example_row, key, columns)
        limit_s, chance = patience.total_seconds(), random.Random(seed)
        bench = Bench(checked, script, read, Path(directory), ordered, limit_s, inside, chance)
        tried, failed = _tried(bench)
    if failed:
        raise AssertionError(_told(type(checked).__name__, failed, len(tried)))
    return SinkReport(type(checked).__name__, tuple(tried), time.monotonic() - began)


def _tried(bench: Bench) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The scenarios that were tried, and those that went wrong."""
    tried: list[str] = []
    failed: list[tuple[str, list[str]]] = []
    last = sys.maxsize
    for name, run in scenarios(bench):
        tried.append(name)
        if problems := _problems(run):
            failed.append((name, problems))
            last = min(last, 1 if len(tried) == 1 else len(tried) + _MORE)
        if len(failed) == _FAILURES or len(tried) >= last:
            return tried, failed
    undone = [("afterwards, all rows of all scenarios", lost) for lost in _undone(bench)]
    return tried, failed or undone


def _problems(run: Callable[[], list[str]]) -> list[str]:
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - the sink's own code runs in here
        return [f"{type(error).__name__}: {error}"]


def _undone(bench: Bench) -> list[list[str]]:
    """What later scenarios did to rows of earlier ones."""
    visible = bench.script.see(bench.read())
    found = [
        cluster.expectation.problems(visible, ordered=False)
        for cluster in bench.made
        if cluster.expectation.durable
    ]
    return [problems for problems in found if problems]


def _told(name: str, failed: list[tuple[str, list[str]]], tried: int) -> str:
    lines = [f"{name} is not exactly once: {len(failed)} of {tried} scenarios failed"]
    for scenario, problems in failed:
        lines.append(f"- {scenario}:")
        lines += [f"    {problem}" for problem in problems[:_ROWS_TOLD]]
        if len(problems) > _ROWS_TOLD:
            lines.append(f"    and {len(problems) - _ROWS_TOLD} more")
    return "\n".join(lines)
