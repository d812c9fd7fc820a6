"""Rules that every shard has: the engine does what the interpreter does, on any number of shards."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

import headrace as hr
from headrace._graph.nodes import ERRORS, MAIN
from headrace._runtime.process.reads.tables import places_of, state_table
from headrace.errors import UserCodeError
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import StepHarness
from tests.runtime.process.cases import RANDOM, Written, compare, process_node, written
from tests.runtime.process.programs import STATES
from tests.runtime.windows.cases import disturbances

#: Those that end have tests of their own.
FOREVER = tuple(name for name in STATES if "_" not in name)
ROWS = {"key": str, "n": int}
RULES = {"name": str, "n": int}
SAID = {"said": str}


@RANDOM
@given(written("broadcast", states=FOREVER, ordered=False), disturbances())
def test_rules_are_the_same_for_all_keys_and_shards(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)


class Check(hr.KeyedBroadcastProcessFunction):
    """Does with each row what its test wants."""

    rules: hr.state.Broadcast[str, int]
    seen: hr.state.Value[int] = hr.state.FOREVER
    names: hr.state.Map[str, int] = hr.state.FOREVER
    items: hr.state.List[int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield {"said": f"{value.key}: {self.rules.items()}"}

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.rules[value.name] = value.n
        yield {"said": f"{value.name} is {value.n}"}


class CheckAll(hr.BroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield {"said": f"{value.key}: {self.rules.items()}"}

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.rules.put(value.name, value.n)
        return iter(())


def step(function: Any, *, keys: Any = (("key",), ()), **said: Any) -> Any:
    return process_node(function, "broadcast", schema=SAID, inputs=[ROWS, RULES], keys=keys, **said)


def row(key: str, n: int = 0, at: int = 10) -> SidedRow:
    return SidedRow(at, {"key": key, "n": n}, 0, ("rows", "0", n))


def rule(name: str, n: int, offset: int = 0) -> SidedRow:
    return SidedRow(5, {"name": name, "n": n}, 1, ("rules", "0", offset))


def epochs(*rows: list[SidedRow]) -> list[StepEpoch]:
    return [StepEpoch(number, number + 1, mine) for number, mine in enumerate(rows)]


def said(outputs: Any) -> list[str]:
    return [row["said"] for row in outputs[MAIN]]


@pytest.mark.parametrize("shards", [1, 3])
def test_broadcast_rows_come_first_in_their_order_and_speak_once(shards: int) -> None:
    rows = [row("a"), rule("x", 1, 0), row("b"), rule("y", 2, 1), rule("x", 3, 2)]
    found = said(StepHarness(step(Check()), shards).run(epochs(rows)))
    assert sorted(found) == sorted(
        ["x is 1", "y is 2", "x is 3", "a: [('x', 3), ('y', 2)]", "b: [('x', 3), ('y', 2)]"]
    )


@pytest.mark.parametrize("keys", [(("key",), ()), ((), ())])
@pytest.mark.parametrize("counts", [(1, 3), (3, 1), (2, 3)])
def test_rules_move_to_another_number_of_shards(keys: Any, counts: tuple[int, int]) -> None:
    node = step(Check() if keys[0] else CheckAll(), keys=keys)
    many = [row(key, n) for n, key in enumerate("abcdefghijkl")]
    stream = epochs([rule("x", 1), rule("y", 2, 1)], many, [rule("x", 3, 2), *many])
    harness = StepHarness(node, counts[0])
    found = [s for s in said(harness.run(stream, restores={1: counts[1], 2: 2})) if ":" in s]
    first = [f"{key}: [('x', 1), ('y', 2)]" for key in "abcdefghijkl"]
    assert sorted(found) == sorted(first + [s.replace("1", "3") for s in first])
    # Read from outside, it is there once, however many shards have it.
    table = state_table(places_of(node)["rules"], harness.stores)
    assert table.to_pydict() == {"map_key": ["x", "y"], "value": [3, 2]}


def test_rows_without_keys_are_dealt_evenly_and_stay_in_order() -> None:
    class Where(CheckAll):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield {"said": f"{value.n}"}

    for shards in (2, 3):
        harness = StepHarness(step(Where(), keys=((), ())), shards)
        rows = [row("a", n) for n in range(30)]
        found = [int(s) for s in said(harness.run(epochs(rows)))]
        assert sorted(found) == list(range(30))
        # One shard behind the other: where the next one begins, numbers begin anew.
        lengths = _rising(found)
        assert len(lengths) == shards
        assert max(lengths) - min(lengths) <= 2


def _rising(numbers: list[int]) -> list[int]:
    starts = [0, *(i for i in range(1, len(numbers)) if numbers[i] < numbers[i - 1]), len(numbers)]
    return [b - a for a, b in pairwise(starts)]


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        ("self.seen.value()", "the state 'seen', which belongs to a key, but a broadcast row has"),
        ("self.seen.update(1)", "the state 'seen', which belongs to a key"),
        ("self.names.get('x')", "the state 'names', which belongs to a key"),
        ("self.names.put('x', 1)", "the state 'names', which belongs to a key"),
        ("self.items.add(1)", "the state 'items', which belongs to a key"),
        ("ctx.key", "uses ctx.key, but a broadcast row has no key"),
        ("ctx.timers.register_event_time(ctx.timestamp)", "uses ctx.timers, but a broadcast row"),
    ],
)
def test_what_belongs_to_keys_is_refused_in_a_broadcast_row(use: str, sentence: str) -> None:
    class Wrong(Check):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            eval(use)

    with pytest.raises(UserCodeError, match=sentence):
        StepHarness(step(Wrong())).run(epochs([rule("x", 1)]))


@pytest.mark.parametrize("method", ["process_element", "on_timer"])
@pytest.mark.parametrize(
    "change",
    [
        lambda rules: rules.put("x", 2),
        lambda rules: rules.remove("x"),
        lambda rules: rules.clear(),
        lambda rules: rules.__setitem__("x", 2),
        lambda rules: rules.__delitem__("x"),
        lambda rules: rules.put_all({"x": 2}),
    ],
)
def test_broadcast_state_is_read_only_elsewhere(method: str, change: Any) -> None:
    class Wrong(Check):
        def process_element(self, value: Any, ctx: Any) -> Any:
            if method == "on_timer":
                ctx.timers.register_event_time(ctx.timestamp)
            else:
                change(self.rules)

        def on_timer(self, timestamp: Any, ctx: Any) -> Any:
            change(self.rules)

    stream = [*epochs([rule("x", 1)]), StepEpoch(1, 20, [row("a")])]
    with pytest.raises(
        UserCodeError, match=r"'rules' where it can be read only.*process_broadcast_el"
    ):
        StepHarness(step(Wrong())).run(stream)


def test_keys_are_refused_where_rows_have_none() -> None:
    class Wrong(CheckAll):
        def process_element(self, value: Any, ctx: Any) -> Any:
            return [{"said": ctx.key}]

    with pytest.raises(
        UserCodeError, match=r"uses ctx.key, but its rows have no keys; call key_by"
    ):
        StepHarness(step(Wrong(), keys=((), ()))).run(epochs([row("a")]))


def test_state_of_keys_is_back_behind_broadcast_rows() -> None:
    class Count(Check):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.seen.update((self.seen.value() or 0) + 1)
            yield {"said": f"{value.key} {self.seen.value()}"}

    stream = epochs([row("a"), rule("x", 1)], [rule("y", 1), row("a"), row("b")])
    found = said(StepHarness(step(Count()), 2).run(stream))
    assert sorted(s for s in found if "is" not in s) == ["a 1", "a 2", "b 1"]


def test_a_broadcast_row_that_fails_is_one_dead_letter_and_changes_no_shard() -> None:
    class Fails(Check):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.rules[value.name] = value.n
            yield {"said": "nobody hears this"}
            if value.n < 0:
                raise ValueError("below zero")

    rows = [rule("x", 1, 0), rule("x", -1, 1), rule("y", -2, 2), row("a"), row("b")]
    found = StepHarness(step(Fails(), on_error="dead_letter"), 3).run(epochs(rows))
    assert [r for r in sorted(said(found)) if ":" in r] == ["a: [('x', 1)]", "b: [('x', 1)]"]
    assert said(found).count("nobody hears this") == 1
    assert [letter["offset"] for letter in found[ERRORS]] == [1, 2]


def test_rules_come_in_the_order_of_their_sources_however_they_were_read() -> None:
    rules = [
        SidedRow(5, {"name": "x", "n": n}, 1, (source, partition, offset))
        for source, partition, offset, n in [
            ("b", "0", 1, 4), ("a", "1", 0, 3), ("a", "0", 1, 2), ("b", "0", 2, 5), ("a", "0", 0, 1),
        ]
    ]  # fmt: skip
    found = said(StepHarness(step(Check()), 2).run(epochs(rules)))
    assert found == [f"x is {n}" for n in range(1, 6)]
