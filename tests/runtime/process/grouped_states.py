"""A process step that does to its one state what its rows say, and a plain object that it is compared with."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa

import headrace as hr
from headrace._graph.nodes import MAIN, KeyedProcess
from headrace._runtime import registry
from headrace._runtime.process.cursor import Cursor
from headrace._runtime.process.layout import Layout
from headrace._runtime.process.touched import Touched
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.keys import hash_keys
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness, step_of
from tests.runtime.streams import timed_stream

__all__ = ["Doing", "Undoing", "expected", "kept_rows", "node_of", "run", "said"]

ROWS = {"key": str, "n": int, "ops": str}
SAID = {"key": str, "n": int, "said": str}

#: What an operation does to a state, and what it says.
Act = Callable[..., Any]


class Doing(hr.KeyedProcessFunction):
    """Does what rows say. A class derived from it declares `state`."""

    acts: Mapping[str, Act]

    def process_element(self, value: Any, ctx: Any) -> Any:
        """The operations of a row, and what each of them said."""
        yield {"key": ctx.key, "n": value.n, "said": said(self.acts, self.state, value.ops)}  # type: ignore[attr-defined]


def said(acts: Mapping[str, Act], state: Any, ops: str) -> str:
    """What a list of operations says."""
    answers = []
    for name, *arguments in json.loads(ops):
        if name == "fail":
            raise ValueError("asked to fail")
        try:
            answers.append(acts[name](state, *arguments))
        except KeyError as error:
            answers.append(f"no {error}")
    return repr(answers)


def node_of(function: hr.KeyedProcessFunction, **fields: Any) -> KeyedProcess:
    """The step that users get when they build it so."""
    rows = timed_stream(hr.Environment("doing"), ROWS, "input")
    node = step_of(rows.key_by("key").process(function, schema=SAID, uid="doing", **fields))
    assert isinstance(node, KeyedProcess)
    return node


def run(
    node: KeyedProcess, epochs: Sequence[Sequence[tuple[str, Any]]], **how: Any
) -> list[tuple[int, str]]:
    """What the engine says to (key, operations), by the number of the row."""
    harness, n = StepHarness(node, how.pop("shards", 1)), 0
    timed = []
    for number, rows in enumerate(epochs):
        fields = [
            {"key": key, "n": n + i, "ops": json.dumps(ops)} for i, (key, ops) in enumerate(rows)
        ]
        n += len(rows)
        timed.append(StepEpoch(number, number + 1, [(number + 1, row) for row in fields]))
    out = harness.run(timed, **how)
    return sorted((row["n"], row["said"]) for row in out[MAIN])


def expected(
    acts: Mapping[str, Act], make: Callable[[], Any], epochs: Sequence[Sequence[tuple[str, Any]]]
) -> list[tuple[int, str]]:
    """What plain objects say, one for each key."""
    states: dict[str, Any] = {}
    rows = [row for epoch in epochs for row in epoch]
    return [
        (n, said(acts, states.setdefault(key, make()), json.dumps(ops)))
        for n, (key, ops) in enumerate(rows)
    ]


def kept_rows(harness: StepHarness, table: str) -> int:
    """How many rows a table has in all shards."""
    count = 0
    for store in harness.stores:
        state = ShardState(registry.tables(harness.node), store, MemoryArrays(), range(128))
        state.open()
        count += state.rows(table, 0)
    return count


class Undoing:
    """A state without an operator around it: some rows are undone as those of dead letters are."""

    def __init__(self, function: Doing, handle: Any, store: Any) -> None:
        self._node = node_of(function)
        self._store = store
        (self._spec,) = self._node.states
        self._cursor = Cursor()
        self._handle = handle(self._spec, "doing", self._cursor)
        self._log, self._arrays = MemoryChunkStore(), MemoryArrays()

    def run(
        self, epochs: Sequence[Sequence[tuple[str, Any]]], failing: AbstractSet[int]
    ) -> list[str]:
        """What is said to all rows, also to those that are undone then."""
        answers, n = [], 0
        for rows in epochs:
            state = ShardState(registry.tables(self._node), self._log, self._arrays, range(128))
            state.open()
            touched, journal = Touched(Layout(self._node).keys), []
            store = self._store(self._spec, state, touched, journal, "doing")
            self._handle.serve(store)
            for key, ops in rows:
                self._touch(touched, store, key)
                answers.append(said(self._node.function.acts, self._handle, json.dumps(ops)))
                while n in failing and journal:
                    undo, *arguments = journal.pop()
                    undo(*arguments)
                journal.clear()
                n += 1
            store.write()
            state.commit()
        return answers

    def expected(
        self,
        make: Callable[[], Any],
        epochs: Sequence[Sequence[tuple[str, Any]]],
        failing: AbstractSet[int],
    ) -> list[str]:
        """What plain objects say, of which a failing row changes a copy."""
        states: dict[str, Any] = {}
        answers = []
        for n, (key, ops) in enumerate(row for rows in epochs for row in rows):
            state = states.setdefault(key, make())
            state = copy.deepcopy(state) if n in failing else state
            answers.append(said(self._node.function.acts, state, json.dumps(ops)))
        return answers

    def _touch(self, touched: Touched, store: Any, key: str) -> None:
        before, columns = len(touched), [pa.array([key])]
        self._cursor.code = int(touched.codes(hash_keys(columns), columns)[0])
        if len(touched) > before:
            store.load(before)
