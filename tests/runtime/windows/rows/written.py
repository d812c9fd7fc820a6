"""Functions as users write them, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import headrace as hr
from headrace._graph.nodes import WindowProcess
from headrace.schema import as_schema
from headrace.windows import Assigner
from tests.runtime.windows.cases import step_node


@dataclass
class Told:
    """What the function below says of a firing."""

    key: str
    numbers: list[int | None]
    pane: str
    firing: int
    ends: int
    watermark: int
    seen_here: int
    seen_ever: int


BIG = hr.OutputTag("big", {"key": str, "rows": int})
EMPTY = hr.OutputTag("empty", {"text": str})


class Tells(hr.ProcessWindowFunction):
    """Everything that a context has, and state of both kinds; firings with three rows or more go aside too."""

    calls: hr.state.Value[int]
    keys: hr.state.Value[list[str]]

    def process(self, key: Any, context: Any, rows: Any) -> Iterator[Told]:
        here, ever = context.window_state.calls, context.global_state.calls
        here.update((here.value() or 0) + 1)
        ever.update((ever.value() or 0) + 1)
        keys = context.global_state.keys
        keys.update([*(keys.value() or []), str(key)][-2:])
        if len(rows) >= 3:
            yield BIG, {"key": str(key), "rows": len(rows)}  # type: ignore[misc]
        if context.firing > 1:
            context.output(EMPTY, {"text": f"{key} again"})
        yield Told(
            key=str(key),
            numbers=[row.number for row in rows],
            pane=context.pane,
            firing=context.firing,
            ends=context.window.end.year,
            watermark=0 if context.watermark is None else context.watermark.microsecond,
            seen_here=here.value(),
            seen_ever=ever.value() + 100 * len(keys.value()),
        )

    def clear(self, context: Any) -> None:
        context.global_state.calls.update(1000 + (context.global_state.calls.value() or 0))
        context.window_state.calls.clear()


@dataclass
class Summary:
    """What is said behind aggregates."""

    key: str
    rows: int
    total: int | None
    calls: int


class Sums(hr.ProcessWindowFunction):
    """Gets aggregates, not rows."""

    calls: hr.state.Value[int]

    def process(self, key: Any, context: Any, rows: Any) -> Iterator[Summary]:
        (folded,) = rows
        state = context.global_state.calls
        state.update((state.value() or 0) + 1)
        yield Summary(str(key), folded.rows, folded.total, state.value())


def process_node(
    function: hr.ProcessWindowFunction, window: Assigner, schema: Any = Told, **said: Any
) -> WindowProcess:
    """A step with a function as the builder would make it."""
    aggregates = said.pop("aggregates", {})
    tags = tuple((tag.name, tag.schema) for tag in (BIG, EMPTY))
    node = step_node(
        WindowProcess, window, aggregates, function=function, side_outputs=tags, **said
    )
    return replace(node, schema=as_schema(schema))
