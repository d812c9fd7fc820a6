"""Regular joins in whole jobs: of tables that change, of corrected windows, of many inputs and behind one another.

What the changes of a join add up to must be the join of what those of its inputs add up to, however the job is run.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

import headrace as hr
from headrace._graph.join_nodes import KeepRow, RegularJoin
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import cut, run_local
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.watermarks import NO_WATERMARK
from tests.examples import examples
from tests.oracle.joins.regular import RegularOracle, frozen

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ORDERS = {"id": int, "customer": str, "amount": int}
CUSTOMERS = {"customer": str, "city": str, "change": str}
HOWS = ["inner", "left", "right", "full", "semi", "anti"]

#: Ways to disturb a run; none may show.
RUNS: list[dict[str, Any]] = [
    {"shards": 1},
    {"shards": 3, "tasks": 2, "rescale": {2: 1, 4: 2}},
    {"shards": 2, "crashes": [(n, point) for n, point in enumerate(POINTS)], "rescale": {3: 3}},
]


class Changes(MemorySource):
    """Rows as a change log of a database has them."""

    carries_changes = True


class Job:
    """An environment whose streams are watched, and what came by."""

    def __init__(self, rows: int = 4) -> None:
        self.env = hr.Environment("joins", epochs=hr.Epochs(rows=rows))
        self._sinks: dict[tuple[int, str], MemorySink] = {}

    def source(self, uid: str, rows: list[Any], schema: Any, **options: Any) -> hr.Stream:
        changes = "change" in (schema.names if isinstance(schema, pa.Schema) else schema)
        made = (Changes if changes else MemorySource)(rows, schema)
        return self.env.from_source(made, uid=uid, **options)

    def watch(self, *streams: Any) -> None:
        """Remember the rows of these, and of whatever joins take."""
        nodes = self.env.graph.nodes
        ports = [stream._port for stream in streams]
        ports += [
            p for n in nodes if isinstance(n, RegularJoin) for p in n.inputs if p not in ports
        ]
        for port in dict.fromkeys(ports):
            uid = nodes[port.node].uid
            self._sinks[port.node, port.output] = sink = MemorySink()
            hr.Stream(self.env.graph, port).sink_to(sink, uid=f"{uid}-out")

    def run(self, **how: Any) -> Any:
        return run_local(self.env, **how)

    def rows(self, port: Any) -> list[dict[str, Any]]:
        return self._sinks[port.node, port.output].to_pylist()

    def agree(self) -> None:
        """Every join is that of its inputs."""
        joins = [n for n in self.env.graph.nodes if isinstance(n, RegularJoin)]
        for node in joins:
            oracle = RegularOracle(node)
            rows = [
                SidedRow(0, row, side)
                for side, port in enumerate(node.inputs)
                for row in self.rows(port)
            ]
            _, right = oracle.epoch(StepEpoch(NO_WATERMARK, NO_WATERMARK, rows))
            found = added_up(self._sinks[node.id, "main"].to_pylist())
            assert found == right, node.uid
            assert not oracle.unknown_withdrawals
        assert joins


def added_up(rows: list[dict[str, Any]]) -> Counter[Any]:
    """What is there when all changes have happened; nothing is withdrawn that is not."""
    bag: Counter[Any] = Counter()
    for row in rows:
        content = frozen({name: value for name, value in row.items() if name != "change"})
        bag[content] += -1 if row.get("change", "+I")[0] == "-" else 1
        assert bag[content] >= 0
    return +bag


def orders(seed: int, many: int = 40) -> list[Any]:
    """Orders of a few customers, of nobody, and of some that nobody knows."""
    chance = random.Random(seed)
    made: list[Any] = []
    for number in range(many):
        made.append(
            {"id": number, "customer": chance.choice([*"aabbcdefx", None]), "amount": number % 3}
        )
        made += [cut()] if chance.random() < 0.1 else []
    return made


def customers(seed: int, many: int = 30) -> list[Any]:
    """Customers come, move to other cities and leave: a change log with what was before and what is then."""
    chance = random.Random(seed)
    city: dict[str, str] = {}
    made: list[Any] = []
    for number in range(many):
        name, new = chance.choice("abcdef"), f"city {number % 7}"
        if name not in city:
            made.append({"customer": name, "city": new, "change": "+I"})
            city[name] = new
        elif chance.random() < 0.3:
            made.append({"customer": name, "city": city.pop(name), "change": "-D"})
        else:
            made.append({"customer": name, "city": city[name], "change": "-U"})
            # Now and then an epoch ends between the two.
            made += [cut()] if chance.random() < 0.2 else []
            made.append({"customer": name, "city": new, "change": "+U"})
            city[name] = new
    return made


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("run", RUNS, ids=["calm", "rescaled", "crashed"])
def test_orders_beside_customers_that_change(how: Any, run: Any) -> None:
    job = Job()
    left, right = (
        job.source("orders", orders(1), ORDERS),
        job.source("log", customers(2), CUSTOMERS),
    )
    joined = left.join(right, on="customer", how=how, forever=True, uid="join")
    job.watch(joined)
    job.run(**run)
    job.agree()


def test_what_is_left_is_the_join_of_the_tables() -> None:
    job = Job(rows=9)
    told, log = orders(3, 200), customers(4, 120)
    joined = job.source("orders", told, ORDERS).join(
        job.source("log", log, CUSTOMERS), on="customer", how="left", forever=True, uid="join"
    )
    job.watch(joined)
    job.run(shards=2)
    table = [dict(content) for content in added_up([r for r in log if isinstance(r, dict)])]
    kept = [row for row in told if isinstance(row, dict)]
    schema = {"customer": pl.String, "city": pl.String}
    right = pl.DataFrame(kept).join(pl.DataFrame(table, schema), on="customer", how="left")
    found = [dict(content) for content in added_up(job.rows(joined._port)).elements()]
    columns = ["id", "customer", "amount", "city"]
    assert pl.DataFrame(found).select(columns).sort("id").equals(right.select(columns).sort("id"))


@pytest.mark.parametrize("run", RUNS, ids=["calm", "rescaled", "crashed"])
def test_corrected_windows_beside_each_other(run: Any) -> None:
    job = Job()
    chance = random.Random(5)
    rows = [
        {"key": chance.choice("abc"), "n": n, "at": START + (n - chance.choice([0, 0, 9])) * SECOND}
        for n in range(60)
    ]
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(SECOND).with_timestamps("at")
    source = job.source("rows", rows, {"key": str, "n": int, "at": datetime}, watermarks=strategy)
    counted = []
    for uid, part in (("odd", 1), ("even", 0)):
        window = (
            source.filter(hr.col("n") % 2 == part)
            .key_by("key")
            .window(hr.windows.Tumbling(5 * SECOND))
        )
        counted.append(
            window.allowed_lateness(20 * SECOND).retracting().aggregate(uid=uid, n=hr.sum("n"))
        )
    both = [s.select("key", "window_end", "n", "change") for s in counted]
    joined = both[0].join(both[1], on=["key", "window_end"], how="full", forever=True, uid="join")
    job.watch(joined)
    job.run(**run)
    job.agree()
    kinds = {row["change"] for row in job.rows(joined._port)}
    assert kinds == {"+I", "-U", "+U", "-D"}


@pytest.mark.parametrize("run", RUNS, ids=["calm", "rescaled", "crashed"])
def test_a_join_behind_a_join_and_one_of_three(run: Any) -> None:
    job = Job()
    left, right = (
        job.source("orders", orders(6), ORDERS),
        job.source("log", customers(7), CUSTOMERS),
    )
    cities = [{"city": f"city {n}", "people": n} for n in (*range(0, 6, 2), 4)]
    places = job.source("cities", cities, {"city": str, "people": int})
    first = left.join(right, on="customer", how="left", forever=True, uid="first")
    second = first.join(places, on="city", how="full", forever=True, uid="second")
    again = second.select("customer", "people", "change")
    third = left.join(right, again, on="customer", how="left", forever=True, uid="third")
    job.watch(first, second, third)
    job.run(**run)
    job.agree()


@pytest.mark.parametrize("how", ["inner", "full", "anti"])
def test_a_stream_with_itself(how: Any) -> None:
    job = Job()
    log = job.source("log", customers(8), CUSTOMERS)
    joined = log.join(log, on="customer", how=how, forever=True, uid="join")
    job.watch(joined)
    job.run(shards=2, rescale={2: 3})
    job.agree()


def test_a_condition_holds_of_all_pairs() -> None:
    job = Job()
    one, other = job.source("one", orders(9), ORDERS), job.source("other", orders(10), ORDERS)
    later = hr.col("id") < hr.col("id_right")
    all_pairs = one.join(other, on="customer", forever=True, uid="all")
    some = one.join(other, on="customer", where=later, forever=True, uid="some")
    job.watch(all_pairs, some)
    job.run(shards=2)
    right = [row for row in job.rows(all_pairs._port) if row["id"] < row["id_right"]]
    assert added_up(job.rows(some._port)) == added_up(right)


@pytest.mark.parametrize("run", RUNS, ids=["calm", "rescaled", "crashed"])
def test_one_row_of_each_key(run: Any) -> None:
    job = Job(rows=7)
    source = job.source("orders", orders(11, 60), ORDERS).key_by("customer")
    first, last = source.first(forever=True, uid="first"), source.last(forever=True, uid="last")
    top = source.top(["amount", "id"], descending=[True, False], forever=True, uid="top")
    listed = job.source("log", customers(12), CUSTOMERS).key_by("customer")
    known = listed.last(forever=True, uid="known")
    job.watch(first, last, top, known)
    # With one task the order of rows is that of the source.
    job.run(**{**run, "tasks": 1})
    job.agree()
    assert {row["change"] for row in job.rows(known._port)} == {"+I", "-U", "+U", "-D"}


@pytest.mark.parametrize("rule", ["first", "last", "top"])
@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_the_one_row_is_the_same_whether_a_step_keeps_it_or_the_join(rule: str, how: Any) -> None:
    def joined(*, apart: bool) -> Counter[Any]:
        job = Job(rows=6)
        left, right = (
            job.source("left", orders(13), ORDERS),
            job.source("right", orders(14), ORDERS),
        )
        keyed = right.select("customer", "amount", of="id").key_by("customer")
        by = ["of"] if rule == "top" else []
        one = getattr(keyed, rule)(*by, forever=True, uid="one")
        result = left.join(one, on="customer", how=how, forever=True, uid="join")
        found = MemorySink()
        result.sink_to(found, uid="found")
        if apart:
            # Somebody else takes its rows, so it is a step of its own.
            one.sink_to(MemorySink(), uid="one-out")
        kinds = {type(node) for node in job.env.plan(shards=2).nodes.values()}
        # Of the right of a semi or anti join one row of a key is kept anyway.
        assert (KeepRow in kinds) is (apart or (rule == "first" and how in ("semi", "anti")))
        job.run(shards=2)
        return added_up(found.to_pylist())

    assert joined(apart=True) == joined(apart=False) != Counter()


def test_rows_run_out_by_the_clock() -> None:
    job = Job(rows=100)
    mine, others = ({"id": 1, "customer": name, "amount": 0} for name in "aq")
    left = [mine, cut(), others, cut(), others, cut(), others, cut(), {**mine, "id": 2}]
    log = [{"customer": "a", "city": "x", "change": "+I"}]
    joined = job.source("orders", left, ORDERS).join(
        job.source("log", log, CUSTOMERS), on="customer", how="left", ttl=[None, 3 * SECOND],
        forever=True, uid="join",
    )  # fmt: skip
    job.watch(joined)
    job.run(step=SECOND)
    said = [
        (r["change"], r["id"], r["city"]) for r in job.rows(joined._port) if r["customer"] == "a"
    ]
    assert said == [("+I", 1, "x"), ("+I", 2, None)]


def test_rows_without_keys_and_strange_withdrawals_are_counted() -> None:
    job = Job()
    log = [
        {"customer": "a", "city": "x", "change": "+I"},
        {"customer": "a", "city": "y", "change": "-D"},
        {"customer": None, "city": "z", "change": "+I"},
    ]
    left = job.source("orders", orders(15, 20), ORDERS)
    joined = left.join(
        job.source("log", log, CUSTOMERS), on="customer", how="left", forever=True, uid="join"
    )
    dead = MemorySink()
    joined.errors.sink_to(dead, uid="dead")
    job.watch(joined)
    result = job.run(shards=2, crashes=[(0, "staged"), (1, "durable")])
    nobody = [row for row in orders(15, 20) if isinstance(row, dict) and row["customer"] is None]
    assert result.metrics["join"] == {"unknown_withdrawals": 1, "null_keys": len(nobody)}
    assert [row["cause"] for row in dead.to_pylist()] == ["null key 'customer'"]
    assert result.counts["join"]["dead"] == 1


def test_one_side_has_event_time_and_the_other_has_not() -> None:
    job = Job()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    rows = [{"customer": "ab"[n % 2], "at": START + n * SECOND} for n in range(12)]
    timed = job.source("timed", rows, {"customer": str, "at": datetime}, watermarks=strategy)
    log = job.source("log", customers(16), CUSTOMERS)
    joined = timed.join(log, on="customer", how="full", forever=True, uid="join")
    behind = joined.join(timed, on="customer", forever=True, uid="behind")
    job.watch(joined, behind)
    job.run(shards=2)
    job.agree()


def test_columns_of_dictionaries_come_out_as_they_were() -> None:
    words = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("customer", words), ("city", words), ("change", pa.string())])
    job = Job()
    log = job.source("log", customers(17), schema)
    orders_ = job.source("orders", orders(18), {"id": int, "customer": words, "amount": int})
    joined = orders_.join(log, on="customer", how="full", forever=True, uid="join")
    last = log.key_by("customer").last(forever=True, uid="last")
    job.watch(joined, last)
    job.run(shards=2, rescale={2: 3})
    job.agree()
    assert joined.schema.field("city").type == last.schema.field("city").type == words


@st.composite
def logs(draw: st.DrawFn) -> list[Any]:
    """A change log of rows that often are the same; what it withdraws is there."""
    there: list[Any] = []
    made: list[Any] = []
    for _ in range(draw(st.integers(0, 14))):
        fate = draw(st.integers(0, 9))
        if fate < 4 and there:
            gone = there.pop(draw(st.integers(0, len(there) - 1)))
            made.append({**gone, "change": draw(st.sampled_from(["-U", "-D"]))})
        else:
            name, city = draw(st.sampled_from([*"aab", None])), f"city {fate % 2}"
            there.append({"customer": name, "city": city})
            made.append({**there[-1], "change": draw(st.sampled_from(["+I", "+U"]))})
        made += [cut()] if fate == 9 else []
    return made


@examples(40, phases=[Phase.explicit, Phase.generate])
@given(logs(), logs(), st.sampled_from(HOWS), st.sampled_from(RUNS), st.integers(1, 9))
def test_random_logs(left: Any, right: Any, how: Any, run: Any, rows: int) -> None:
    job = Job(rows)
    one, other = job.source("one", left, CUSTOMERS), job.source("other", right, CUSTOMERS)
    joined = one.join(other, on="customer", how=how, forever=True, uid="join")
    behind = joined.join(
        one, on="customer", how="full", forever=True, suffix="_again", uid="behind"
    )
    job.watch(joined, behind)
    job.run(**run)
    job.agree()


@pytest.mark.parametrize("shards", [1, 2, 3])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_rows_that_move_between_keys_of_a_join_are_not_lost_behind_it(
    shards: int, how: Any
) -> None:
    """What withdraws an old row and what brings the new one come from different shards, in any order."""
    people = range(40)
    job = Job(rows=200)
    moved = [{"id": n, "team": n % 7} for n in people] + [cut()]
    moved += [{"id": n, "team": (n + 3) % 7} for n in people]
    bosses = [{"team": n, "boss": f"boss {n}"} for n in range(7)]
    now = job.source("people", moved, {"id": int, "team": int}).key_by("id").last(uid="now")
    teams = job.source("teams", bosses, {"team": int, "boss": str})
    joined = now.join(teams, on="team", how=how, uid="joined")
    out = MemorySink()
    joined.key_by("id").last(uid="again").sink_to(out, uid="out")
    run_local(job.env, shards)
    left: Counter[Any] = Counter()
    for row in out.to_pylist():
        left[row["id"], row["boss"]] += 1 if row["change"][0] == "+" else -1
    assert +left == Counter((n, f"boss {(n + 3) % 7}") for n in people)


def test_lists_of_a_fixed_size_come_out_as_they_went_in() -> None:
    kind = pa.list_(pa.float32(), 2)
    table = pa.table({"key": [1, 2], "vector": pa.array([[1.0, 2.0], None], kind)})
    env, out = hr.Environment("vectors"), MemorySink()
    left, right = (env.from_source(MemorySource(table), uid=uid) for uid in ("left", "right"))
    joined = left.join(right.key_by("key").last(uid="last"), on="key", uid="joined")
    assert joined.schema.field("vector_right").type == kind
    joined.sink_to(out, uid="out")
    run_local(env, 2)
    found = sorted((r["key"], r["vector"], r["vector_right"]) for r in out.to_pylist())
    assert found == [(1, [1.0, 2.0], [1.0, 2.0]), (2, None, None)]
