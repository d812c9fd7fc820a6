"""Regular joins, random ones too, their streams and right answers: what the tests of the engine share.

A join is compared by what it shows: its changes are applied one after the other to a bag of rows, which must be the
oracle's behind every phase, and never have less than none of a row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import Phase
from hypothesis import strategies as st

from headrace._graph.changes import CHANGE
from headrace._graph.join_columns import joined_columns, result_schema_of
from headrace._graph.join_nodes import Keep, KeepRow, RegularJoin
from headrace._graph.nodes import ERRORS, MAIN, Port
from headrace.expressions import Expression, col
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import PHASE, TIME, Outputs, StepHarness
from headrace.watermarks import NO_WATERMARK
from tests.examples import examples
from tests.oracle.joins.regular import RegularOracle, frozen

#: A join that fails is printed as it was drawn.
RANDOM = examples(25, phases=[Phase.explicit, Phase.generate])
HOWS = ("inner", "left", "right", "full", "semi", "anti")
POSITION = pa.struct([("x", pa.float64()), ("names", pa.list_(pa.string()))])
#: Each input has the key and columns that no other has.
KEYS: dict[str, list[pa.Field]] = {
    "text": [pa.field("key", pa.string())],
    "float": [pa.field("key", pa.float64())],
    "whole": [pa.field("key", pa.int64())],
    "two": [pa.field("key", pa.string()), pa.field("part", pa.int32())],
}
VALUES: dict[str, Any] = {
    "n": pa.int64(),
    "x": pa.float64(),
    "tags": pa.list_(pa.int64()),
    "position": POSITION,
    "counts": pa.map_(pa.string(), pa.int64()),
}


def join_node(
    how: Any = "inner",
    *,
    key: str = "text",
    values: Sequence[Sequence[str]] = (("n",), ("n",)),
    changing: Sequence[bool] | None = None,
    keeps: Sequence[Keep | None] | None = None,
    ttls: Sequence[int | None] | None = None,
    condition: Expression | None = None,
) -> RegularJoin:
    """A join as the builder would make it; `values` are columns of each input, which get its number behind them."""
    none = (None,) * len(values)
    changing = tuple(changing or (False,) * len(values))
    schemas = tuple(
        pa.schema([*KEYS[key], *(pa.field(f"{name}{side}", VALUES[name]) for name in names)])
        for side, names in enumerate(values)
    )
    schemas = tuple(
        schema.append(pa.field(CHANGE, pa.string())) if changes else schema
        for schema, changes in zip(schemas, changing, strict=True)
    )
    keys = (tuple(field.name for field in KEYS[key]),) * len(values)
    columns = joined_columns(schemas, keys, how, changing=changing)
    node = (RegularJoin if len(values) > 1 else KeepRow)(
        id=1, uid="join", inputs=tuple(Port(0, f"input-{side}") for side in range(len(values))),
        schema=pa.schema([]), keys=keys, input_schemas=schemas, how=how, columns=columns,
        changing=changing, keeps=tuple(keeps or none), ttls_us=tuple(ttls or none),
        condition=condition,
    )  # fmt: skip
    own = [pa.field(CHANGE, pa.string())] if node.emits_changes else []
    return replace(node, schema=result_schema_of(columns, schemas, own))


def compare(
    node: RegularJoin,
    epochs: Sequence[StepEpoch],
    where: Callable[[Any], bool] = lambda _: True,
    **how: Any,
) -> StepHarness:
    """The engine shows what the oracle shows; `how` is one of `disturbances`."""
    harness = StepHarness(
        node, how.pop("shards", 1), how.pop("batch_rows", 1_000_000), stamped=True
    )
    check(harness, epochs, where, **how)
    return harness


def check(
    harness: StepHarness,
    epochs: Sequence[StepEpoch],
    where: Callable[[Any], bool] = lambda _: True,
    *,
    restores: Mapping[int, int] | None = None,
    crashes: Sequence[int] = (),
) -> None:
    """The same for a harness that is there."""
    oracle = RegularOracle(harness.node, where)
    bag: Counter[Any] = Counter()
    letters = 0
    for number, epoch in enumerate(epochs):
        shards = (restores or {}).get(number)
        outputs = harness.run(
            [epoch],
            restores=None if shards is None else {0: shards},
            crashes=[0] if number in crashes else (),
        )
        told = zip(("before", "after"), (epoch.early, epoch.rows), oracle.epoch(epoch), strict=True)
        for phase, rows, right in told:
            said = [row for row in outputs[MAIN] if row[PHASE] == phase]
            apply(bag, said)
            missing, too_much = right - bag, bag - right
            assert not missing, f"epoch {number}, {phase}: missing {missing}, too much {too_much}"
            assert not too_much, f"epoch {number}, {phase}: too much {too_much}"
            _check_times(harness.node, rows, said)
            _check_net(harness.node, said)
        letters += len(outputs[ERRORS])
        assert letters == len(oracle.errors)
    if not crashes:
        counted = harness.metrics.readings()
        assert counted.get("unknown_withdrawals", 0) == oracle.unknown_withdrawals
        assert counted.get("null_keys", 0) == oracle.null_keys


def apply(bag: Counter[Any], said: Sequence[Mapping[str, Any]]) -> None:
    """Let changes happen one after the other; nothing is withdrawn that is not there."""
    for row in said:
        content = shown(row)
        bag[content] += -1 if row.get(CHANGE, "+I") in ("-U", "-D") else 1
        assert bag[content] >= 0, f"{row} withdraws what is not shown"
        if not bag[content]:
            del bag[content]


def shown(row: Mapping[str, Any]) -> Any:
    """A result as the oracle has it."""
    return frozen({name: value for name, value in row.items() if name not in (CHANGE, TIME, PHASE)})


def letters(outputs: Outputs) -> list[Any]:
    """Dead letters, as rows."""
    return [json.loads(row["payload"]) for row in outputs[ERRORS]]


def _check_times(node: RegularJoin, rows: Sequence[Any], said: Sequence[Any]) -> None:
    """A result has the time of a row of its key in the phase."""
    times: dict[Any, set[int]] = {}
    for row in rows:
        key = frozen([row.fields[name] for name in node.keys[0]])
        times.setdefault(key, set()).add(row.at)
    for row in said:
        assert row[TIME] in times[frozen([row[name] for name in node.keys[0]])]


def _check_net(node: RegularJoin, said: Sequence[Any]) -> None:
    """No pair comes and goes in one phase, where rows are not replaced and equal ones are in for the same.

    A result with nulls, or with keys only, may be two different ones.
    """
    told = [column.name for column in node.columns if column.name[0] == "n"]
    if any(node.keeps) or any(node.ttls_us) or not told:
        return
    pairs = [row for row in said if all(row[name] is not None for name in [*node.keys[0], *told])]
    minus = {shown(row) for row in pairs if row.get(CHANGE, "+I") in ("-U", "-D")}
    plus = {shown(row) for row in pairs if row.get(CHANGE, "+I") in ("+I", "+U")}
    assert not minus & plus


def row(side: int, key: Any, n: Any = 0, change: str | None = None, at: int = 0) -> SidedRow:
    """A row of a join with one key column and the value "n"."""
    fields = {"key": key, f"n{side}": n} | ({} if change is None else {CHANGE: change})
    return SidedRow(at, fields, side)


def epochs_of(*phases: Sequence[SidedRow], step: int = 1) -> list[StepEpoch]:
    """One epoch for each list of rows; the clock moves by a step with each."""
    return [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, rows, (), number * step, (number + 1) * step)
        for number, rows in enumerate(phases)
    ]


@dataclass(frozen=True)
class Drawn:
    """A random join and its stream."""

    node: RegularJoin
    epochs: Sequence[StepEpoch]
    #: n0 <= n1, where the condition of the node says so.
    compares: bool = False

    def where(self, pair: Any) -> bool:
        """What the condition of the node says."""
        if not self.compares:
            return True
        return pair["n0"] is not None and pair["n1"] is not None and pair["n0"] <= pair["n1"]


_KEY_VALUES: dict[str, list[Any]] = {
    "text": ["", "a", "b", "ä"],
    "float": [0.0, -0.0, float("nan"), 1.5],
    "whole": [0, 1, -7, 2**62],
    "two": ["", "a"],
}
_VALUE_VALUES: dict[str, list[Any]] = {
    "n": [None, 0, 1, 2],
    "x": [None, 0.0, -0.0, float("nan")],
    "tags": [None, [], [1], [1, None], [None, 1]],
    "position": [
        None,
        {"x": None, "names": None},
        {"x": float("nan"), "names": ["", None]},
        {"x": 1.0, "names": []},
    ],
    "counts": [None, [], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)]],
}


@st.composite
def joins(draw: st.DrawFn, *, hows: Sequence[str] = HOWS, most: int = 4) -> Drawn:
    """A join of any kind, of two inputs or more, and what comes to it."""
    how = draw(st.sampled_from(list(hows)))
    inputs = draw(st.sampled_from([2, 2, 2, 3, most])) if how in ("inner", "left") else 2
    changing = [draw(st.booleans()) for _ in range(inputs)]
    ends = [draw(st.sampled_from([None, None, 1, 3, 9])) for _ in range(inputs)]
    if inputs > 2 and how == "left":
        ends[1:] = [None] * (inputs - 1)
    keeps = [draw(_keep(side, is_changing)) for side, is_changing in enumerate(changing)]
    if how in ("semi", "anti") and not changing[1] and ends[1] is None:
        keeps[1] = Keep("first")
    compares = how == "inner" and draw(st.booleans())
    node = join_node(
        how,
        key=draw(st.sampled_from(sorted(KEYS))),
        values=[draw(_value_names(most=2)) for _ in range(inputs)],
        changing=changing,
        keeps=keeps,
        ttls=ends,
        condition=col("n0") <= col("n1") if compares else None,
    )
    return Drawn(node, draw(streams(node)), compares)


@st.composite
def keeps_of_one(draw: st.DrawFn) -> Drawn:
    """A `first`, `last` or `top`, and what comes to it."""
    changing = draw(st.booleans())
    keep = draw(_keep(0, changing).filter(lambda keep: keep is not None))
    node = join_node(
        key=draw(st.sampled_from(sorted(KEYS))),
        values=[draw(_value_names(most=3))],
        changing=[changing],
        keeps=[keep],
        ttls=[draw(st.sampled_from([None, 1, 3, 9]))],
    )
    return Drawn(node, draw(streams(node)))


def _value_names(most: int) -> st.SearchStrategy[list[str]]:
    others = [name for name in VALUES if name != "n"]
    return st.lists(st.sampled_from(others), max_size=most - 1, unique=True).map(
        lambda names: ["n", *names]
    )


def _keep(side: int, changing: bool) -> st.SearchStrategy[Keep | None]:
    rules: list[Keep | None] = [None, None, Keep("last")]
    if not changing:
        rules += [Keep("first"), Keep("top", (f"n{side}",), (True,))]
        rules += [Keep("top", (f"n{side}", "key"), (False, True))]
    return st.sampled_from(rules)


@st.composite
def streams(draw: st.DrawFn, node: RegularJoin) -> list[StepEpoch]:
    """Epochs of rows that often are the same; what withdraws often finds something."""
    clock = draw(st.integers(0, 20))
    shown_nulls: Counter[Any] = Counter()
    epochs = []
    for _ in range(draw(st.integers(1, 6))):
        later = clock + draw(st.sampled_from([0, 1, 2, 4, 70_000_000]))
        early, rows = (draw(_phase(node, most, shown_nulls)) for most in (4, 10))
        epochs.append(StepEpoch(NO_WATERMARK, NO_WATERMARK, rows, early, clock, later))
        clock = later
    return epochs


@st.composite
def _phase(
    draw: st.DrawFn, node: RegularJoin, most: int, shown_nulls: Counter[Any]
) -> list[SidedRow]:
    found = []
    for _ in range(draw(st.integers(0, most))):
        side = draw(st.integers(0, len(node.inputs) - 1))
        fields = {name: draw(_value(node, name)) for name in node.input_schemas[side].names}
        if any(fields[name] is None for name in node.keys[side]):
            # Nobody remembers rows without a key: who withdraws one must have sent it.
            content = (side, frozen({k: v for k, v in fields.items() if k != CHANGE}))
            if fields.get(CHANGE, "+I") in ("-U", "-D") and not shown_nulls[content]:
                fields[CHANGE] = "+I"
            shown_nulls[content] += -1 if fields.get(CHANGE, "+I") in ("-U", "-D") else 1
        found.append(SidedRow(draw(st.integers(0, 9)), fields, side))
    return found


def _value(node: RegularJoin, name: str) -> st.SearchStrategy[Any]:
    if name == CHANGE:
        return st.sampled_from(["+I", "+I", "+U", "-U", "-D"])
    if name == "part":
        return st.sampled_from([None, 1, 2, 2])
    if name == "key":
        kind = {pa.string(): "text", pa.float64(): "float", pa.int64(): "whole"}[
            node.input_schemas[0].field("key").type
        ]
        return st.sampled_from([None, *_KEY_VALUES[kind], *_KEY_VALUES[kind]])
    return st.sampled_from(_VALUE_VALUES[name.rstrip("0123456789")])
