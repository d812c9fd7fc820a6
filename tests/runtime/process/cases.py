"""Process steps, random programs and their streams, and right answers: what the tests of the engine share.

Times are a few units, so that watermarks, timers and lifetimes often lie exactly on one another. The unit is a
microsecond or much longer: timers lie in slices of time by their distance.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from hypothesis import Phase
from hypothesis import strategies as st

import headrace as hr
from headrace._graph.nodes import ERRORS, LATE, MAIN, KeyedProcess
from headrace._runtime.process.reads.tables import places_of, state_table
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import PHASE, TIME, Outputs, StepHarness, step_of
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.examples import examples
from tests.oracle import ProcessOracle
from tests.runtime.contract import sort
from tests.runtime.process.programs import (
    INPUT,
    OTHER,
    RULES,
    STATES,
    BroadcastProgram,
    CoProgram,
    Program,
    Told,
)
from tests.runtime.streams import timed_stream

#: A program that fails is printed as it was drawn: to shrink it takes minutes.
RANDOM = examples(10, phases=[Phase.explicit, Phase.generate])
UNITS = [1, 1, 1_000_000, 3_600_000_000]

#: kind -> (the function, columns of its inputs, keys of its inputs)
_KINDS: dict[str, tuple[type, list[Any], list[tuple[str, ...]]]] = {
    "keyed": (Program, [INPUT], [("key",)]),
    "co": (CoProgram, [INPUT, OTHER], [("key",), ("name",)]),
    "broadcast": (BroadcastProgram, [INPUT, RULES], [("key",), ()]),
}


@dataclass(frozen=True)
class Written:
    """A random step and its stream, as data."""

    kind: str
    uses: tuple[str, ...]
    on_timers: tuple[Any, ...]
    epochs: tuple[StepEpoch, ...]
    unit: int = 1
    ordered: bool = False
    on_error: Any = "fail"

    def node(self) -> KeyedProcess:
        """The step."""
        function = _KINDS[self.kind][0](self.uses, self.on_timers, self.unit)
        ordered = {} if self.kind == "broadcast" else {"ordered": self.ordered}
        return process_node(function, self.kind, on_error=self.on_error, **ordered)


def process_node(
    function: Any, kind: str = "keyed", *, schema: Any = Told, inputs: Any = None, keys: Any = None,
    **said: Any,
) -> KeyedProcess:  # fmt: skip
    """The step that users get when they build it so."""
    env = hr.Environment("process")
    streams = [
        timed_stream(env, columns, f"input-{side}")
        for side, columns in enumerate(inputs or _KINDS[kind][1])
    ]
    sides: list[Any] = [
        stream.key_by(*names) if names else stream
        for stream, names in zip(streams, keys or _KINDS[kind][2], strict=True)
    ]
    taking = sides[0]
    if kind == "broadcast":
        taking = taking.connect(streams[1].broadcast())
    elif len(sides) > 1:
        taking = taking.connect(sides[1])
    node = step_of(taking.process(function, schema=schema, uid="per-key", **said))
    assert isinstance(node, KeyedProcess)
    return node


def compare(node: KeyedProcess, epochs: Sequence[StepEpoch], **how: Any) -> None:
    """The engine says what the oracle says and remembers what it remembers; `how` is one of `disturbances`."""
    wrong = difference(node, epochs, **how)
    assert wrong is None, wrong


def difference(node: KeyedProcess, epochs: Sequence[StepEpoch], **how: Any) -> str | None:
    """What is not as it should be."""
    harness = StepHarness(
        node, how.pop("shards", 1), how.pop("batch_rows", 1_000_000), stamped=True
    )
    oracle = ProcessOracle(node)
    right = answer(oracle, epochs)
    found = shown(harness.run(epochs, **how))
    for output in sorted({*found, *right}):
        mine, theirs = (Counter(map(repr, sort(x.get(output, ())))) for x in (found, right))
        if mine != theirs:
            return f"{output}: missing {theirs - mine}, too much {mine - theirs}"
    kept, expected = final_state(harness), expected_state(oracle)
    return None if kept == expected else f"state: {kept} is not {expected}"


def answer(oracle: ProcessOracle, epochs: Sequence[StepEpoch]) -> Outputs:
    """What the oracle says, stamped as the harness does it."""
    outputs: Outputs = {MAIN: [], LATE: [], ERRORS: []}
    for epoch in epochs:
        for phase, said in zip(("before", "after"), oracle.epoch(epoch), strict=True):
            for output, rows in said.items():
                stamped = [dict(row) | {TIME: at, PHASE: phase} for at, row in rows]
                outputs.setdefault(output, []).extend(stamped)
    return outputs


def shown(outputs: Outputs) -> Outputs:
    """Outputs as the oracle has them: of a dead letter what was given and why it failed."""
    letters = [
        {
            "cause": row["cause"],
            "payload": json.loads(row["payload"]),
            TIME: row[TIME],
            PHASE: row[PHASE],
        }
        for row in outputs.get(ERRORS, [])
    ]
    return dict(outputs) | {ERRORS: letters}


def final_state(harness: StepHarness) -> dict[str, list[Any]]:
    """By name, the rows of every state as they are read from outside."""
    node = harness.node
    return {
        name: sorted((tuple(row.values()) for row in _read(place, harness)), key=repr)
        for name, place in places_of(node).items()
    }


def _read(place: Any, harness: StepHarness) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = state_table(place, harness.stores).to_pylist()
    return rows


def expected_state(oracle: ProcessOracle) -> dict[str, list[Any]]:
    """The same from the oracle."""
    kept: dict[str, list[Any]] = {spec.name: [] for spec in oracle.node.states}
    for key, states in oracle.world.state.items():
        for spec in oracle.node.states:
            pieces = states.get(spec.name, {})
            for number, (slot, (value, _)) in enumerate(pieces.items()):
                inner = {"list": (number,), "map": (slot,), "broadcast": (slot,)}.get(spec.kind, ())
                plain = asdict(value) if is_dataclass(value) else value  # type: ignore[arg-type]
                kept[spec.name].append((*key, *inner, plain))
    return {name: sorted(rows, key=repr) for name, rows in kept.items()}


_NAMES = ["x", "y", "zzz"]
_VALUES = [0, 1, -7]


def _verbs(name: str) -> list[Any]:
    form = STATES[name][0]
    verbs: dict[str, list[Any]] = {
        "value": [("set", v) for v in _VALUES] + [("more", 2), ("more", 5)],
        "word": [("longer", 3), ("longer", 8), ("longer", 0)],
        "list": [("add", v) for v in _VALUES] + [("add_all", 4, 4), ("replace", 9), ("replace",)],
        "map": [("put", k, v) for k in _NAMES for v in _VALUES[:2]]
        + [("put_all", 8, "x", "y"), *((verb, k) for verb in ("bump", "remove", "drop") for k in _NAMES)]
        + [("look", "x"), ("look", "y", "zzz")],
        "reducing": [("add", v) for v in _VALUES],
        "aggregating": [("add", v) for v in _VALUES],
    }  # fmt: skip
    own = [(verb, name, *rest) for verb, *rest in verbs[form]]
    # To look is what shows a mistake, and to clear loses it.
    return own + [("look", name)] * (len(own) // 2) + [("clear", name)] * (len(own) // 6 + 1)


def _operations(uses: Sequence[str], *, fails: bool, chained: bool) -> list[Any]:
    states = [verb for name in uses for verb in _verbs(name)]
    timers: list[Any] = [("timer", by) for by in ((1, 2, 5, 0, -3) if chained else range(-6, 10))]
    timers += [("delete", by) for by in range(-2, 8)]
    timers += [("clock_timer", by) for by in (-2, 0, 1, 3, 8)]
    timers += [("delete_clock", by) for by in (-2, 0, 1, 3)]
    # As much of the one as of the other.
    states *= max(1, len(timers) // len(states))
    timers *= max(1, len(states) // len(timers))
    return states + timers + [("aside",), ("elsewhere",)] + [("fail",)] * (4 * fails)


def _rules(fails: bool) -> list[Any]:
    verbs: list[Any] = [("put", k, v) for k in _NAMES for v in _VALUES]
    return verbs + [("remove", "x"), ("clear",), ("elsewhere",)] + [("fail",)] * fails


@dataclass(frozen=True)
class Parts:
    """What is random about a step besides its rows, and the programs of those."""

    uses: tuple[str, ...]
    on_timers: tuple[Any, ...]
    unit: int
    ordered: bool
    on_error: Any
    programs: Mapping[str, st.SearchStrategy[Any]]


@st.composite
def program_parts(
    draw: st.DrawFn, states: Sequence[str], *, ordered: bool | None, on_error: str | None
) -> Parts:
    """A step with a few of these states; None: either choice."""
    uses = tuple(draw(st.lists(st.sampled_from(list(states)), min_size=1, max_size=4, unique=True)))
    failing = draw(st.sampled_from(["fail", "dead_letter"])) if on_error is None else on_error
    fails = failing == "dead_letter"
    timers = st.lists(st.sampled_from(_operations(uses, fails=fails, chained=True)), max_size=4)
    operations = st.sampled_from(_operations(uses, fails=fails, chained=False))
    return Parts(
        uses=uses,
        on_timers=tuple(draw(st.lists(timers, max_size=3))),
        unit=draw(st.sampled_from(UNITS)),
        ordered=draw(st.booleans()) if ordered is None else ordered,
        on_error=failing,
        programs={
            "program": st.lists(operations, min_size=1, max_size=6),
            "rule": st.lists(st.sampled_from(_rules(fails)), min_size=1, max_size=3),
        },
    )


@st.composite
def written(
    draw: st.DrawFn,
    kind: str = "keyed",
    states: Sequence[str] = tuple(STATES),
    *,
    ordered: bool | None = None,
    on_error: str | None = None,
) -> Written:
    """A step, and epochs of rows that tell it what to do."""
    parts = draw(program_parts(states, ordered=ordered, on_error=on_error))
    return Written(
        kind=kind,
        uses=parts.uses,
        on_timers=parts.on_timers,
        epochs=tuple(draw(_epochs(kind, parts))),
        unit=parts.unit,
        ordered=parts.ordered and kind != "broadcast",
        on_error=parts.on_error,
    )


@st.composite
def _epochs(draw: st.DrawFn, kind: str, parts: Parts) -> list[StepEpoch]:
    numbers = iter(range(1, 10_000))
    side = st.integers(0, 0 if kind == "keyed" else 1)
    # What lives for a time and ends before 1970 is hidden, but not looked for until then.
    start = 20 if any("_" in name for name in parts.uses) else 0

    def rows(most: int) -> list[SidedRow]:
        drawn = draw(
            st.lists(st.tuples(st.integers(-8, 30), side, st.sampled_from("000112")), max_size=most)
        )
        return [
            SidedRow(
                (start + at) * parts.unit,
                fields(draw, kind, which, parts.programs, next(numbers)),
                which,
                ("source", partition, next(numbers)),
            )
            for at, which, partition in drawn
        ]

    marks = sorted(draw(st.lists(st.integers(-5, 32), min_size=1, max_size=5)))
    before, clock = NO_WATERMARK, draw(st.integers(0, 20))
    epochs = []
    for mark in [*((start + mark) * parts.unit for mark in marks), END_OF_TIME]:
        later = clock + draw(st.integers(0, 7))
        epochs.append(StepEpoch(before, mark, rows(10), rows(6), clock, later))
        before, clock = mark, later
    return epochs if draw(st.booleans()) else epochs[:-1]


def fields(
    draw: st.DrawFn, kind: str, side: int, programs: Mapping[str, Any], n: int
) -> dict[str, Any]:
    """A row of an input."""
    if side and kind == "broadcast":
        return {"n": n, "rule": json.dumps(draw(programs["rule"]))}
    key = draw(st.sampled_from(["a", "a", "a", "b", "b", "ä", "dd", None]))
    program = json.dumps(draw(programs["program"]))
    if side:
        return {"n": n, "name": key, "code": program}
    return {"key": key, "n": n, "program": program}
