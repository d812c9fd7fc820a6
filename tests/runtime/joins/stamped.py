"""What oracles of joins say, in the form in which a stamped harness says it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headrace._graph.nodes import ERRORS, LATE, MAIN
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import PHASE, TIME, Outputs, StepHarness
from tests.runtime.contract import assert_same


def answer(oracle: Any, epochs: Sequence[StepEpoch], *, on_time: bool = False) -> Outputs:
    """All that the oracle says, with times and phases. `on_time`: no step behind it may take a result for late."""
    outputs: Outputs = {MAIN: [], LATE: [], ERRORS: []}
    for epoch in epochs:
        for phase, said in zip(("before", "after"), oracle.epoch(epoch), strict=True):
            for output, rows in said.items():
                stamped = [dict(row) | {TIME: at, PHASE: phase} for at, row in rows]
                outputs.setdefault(output, []).extend(stamped)
                passed = epoch.before if phase == "before" else epoch.watermark
                assert not (on_time and output == MAIN) or all(at > passed for at, _ in rows)
    return shown(outputs)


def compare(oracle: Any, epochs: Sequence[StepEpoch], *, on_time: bool = False, **how: Any) -> None:
    """The engine says what the oracle says, at its time and in its phase; `how` is one of `disturbances`."""
    shards = how.pop("shards", 1)
    rows = how.pop("batch_rows", 1_000_000)
    found = StepHarness(oracle.node, shards, rows, stamped=True).run(epochs, **how)
    assert_same(shown(found), answer(oracle, epochs, on_time=on_time))


def shown(outputs: Outputs) -> Outputs:
    """Of a dead letter what was given and why it is there, comparable."""
    letters = [
        {
            "cause": row["cause"],
            "payload": repr(_payload(row["payload"])),
            TIME: row[TIME],
            PHASE: row[PHASE],
        }
        for row in outputs.get(ERRORS, [])
    ]
    return dict(outputs) | {ERRORS: letters}


def _payload(payload: Any) -> Any:
    return json.loads(payload) if isinstance(payload, str) else json.loads(json.dumps(payload))
