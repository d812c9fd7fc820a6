"""What a process that has just begun does with the state that an earlier one left."""

from __future__ import annotations

import json
from typing import Any

from headrace.testing.epochs import StepEpoch
from headrace.watermarks import NO_WATERMARK
from tests.runtime.process.cases import compare, process_node
from tests.runtime.process.programs import Program


def row(*program: Any, at: int = 5) -> Any:
    return at, {"key": "a", "n": 1, "program": json.dumps(program)}


def test_timer_fires_in_a_process_that_has_seen_no_row() -> None:
    node = process_node(Program(["value"], [[("look", "value")]]))
    epochs = [
        StepEpoch(NO_WATERMARK, 4, [row(["set", "value", 3], ["timer", 2])]),
        StepEpoch(4, 20),
    ]
    compare(node, epochs, restores={1: 2})
