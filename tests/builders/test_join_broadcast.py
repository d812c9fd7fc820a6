"""Joins with a broadcast table: what is refused on the user's line, and whole jobs."""

from datetime import timedelta
from typing import Any

import pytest

import headrace as hr
from headrace._graph.changes import carries_changes
from headrace._graph.join_nodes import BroadcastJoin
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import BuildError, SchemaError
from headrace.testing import run_local

ORDERS = [{"country": c, "n": n} for n, c in enumerate(["de", "fr", None, "de", "it", "de"])]
COUNTRIES = [{"country": "de", "name": "Germany"}, {"country": "fr", "name": "France"}]


def streams() -> tuple[hr.Environment, hr.Stream, hr.Stream]:
    env = hr.Environment("table")
    orders = env.from_source(MemorySource(ORDERS), uid="orders")
    return env, orders, env.from_source(MemorySource(COUNTRIES), uid="countries")


def run(env: hr.Environment, joined: hr.Stream, **how: Any) -> list[tuple[Any, ...]]:
    out = MemorySink()
    joined.sink_to(out, uid="out")
    result = run_local(env, 2, **how)
    assert result.counts["named"]["in"] == len(ORDERS) + len(COUNTRIES)
    return sorted((row["n"], row["name"]) for row in out.to_pylist())


def test_rows_stand_beside_the_table() -> None:
    env, orders, countries = streams()
    joined = orders.join(countries.broadcast(), on="country", uid="named")
    assert run(env, joined) == [(0, "Germany"), (1, "France"), (3, "Germany"), (5, "Germany")]


def test_a_left_join_keeps_rows_that_the_table_does_not_know() -> None:
    env, orders, countries = streams()
    joined = orders.join(countries.broadcast(), on="country", how="left", uid="named")
    found = run(env, joined, epochs=hr.Epochs(rows=2), rescale={2: 3}, crashes=[(1, "staged")])
    assert [row for row in found if row[1] is None] == [(2, None), (4, None)]


def test_rows_without_a_key_are_dead_letters_of_an_inner_join() -> None:
    env, orders, countries = streams()
    joined, dead = orders.join(countries.broadcast(), on="country", uid="named"), MemorySink()
    joined.errors.sink_to(dead, uid="dead")
    run(env, joined)
    assert [letter["uid"] for letter in dead.to_pylist()] == ["named"]


def test_keyed_rows_are_looked_up_by_their_key() -> None:
    env, orders, countries = streams()
    joined = orders.key_by("country").join(countries.broadcast(), uid="named")
    assert len(run(env, joined)) == 4


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"how": "full"}, "how='full': choose 'inner', 'left'"),
        ({"ttl": timedelta(hours=1)}, "takes no ttl="),
        ({"where": hr.col("n") > 1}, "takes no where="),
        ({"forever": True}, "takes no forever="),
        ({"on": None}, "A join needs keys: on="),
        ({"on": "n"}, r"'n'.*country"),
    ],
)
def test_what_makes_no_sense_is_refused(said: dict[str, Any], told: str) -> None:
    _, orders, countries = streams()
    with pytest.raises(BuildError, match=told):
        orders.join(countries.broadcast(), **({"on": "country"} | said))


def test_a_third_stream_is_refused() -> None:
    _, orders, countries = streams()
    with pytest.raises(BuildError, match="takes no further streams"):
        orders.join(countries.broadcast(), orders, on="country")


def test_rows_that_may_be_withdrawn_are_refused() -> None:
    _, orders, countries = streams()
    last = orders.key_by("country").last(forever=True)
    with pytest.raises(BuildError, match="withdraws earlier results"):
        last.join(countries.broadcast(), on="country")


def test_a_table_may_carry_changes_and_the_results_do_not() -> None:
    _, orders, countries = streams()
    last = countries.key_by("country").last(forever=True, uid="last")
    joined = orders.join(last.broadcast(), on="country", uid="named")
    node = joined._graph.nodes[joined._port.node]
    assert isinstance(node, BroadcastJoin)
    assert node.changing
    assert joined.schema.names == ["country", "n", "name"]
    assert not carries_changes(joined._graph.nodes, joined._port)


def test_a_column_of_that_name_that_says_nothing_of_changes_stays() -> None:
    env, orders, _ = streams()
    prices = env.from_source(MemorySource([{"country": "de", "change": "+3 %"}]), uid="prices")
    joined = orders.join(prices.broadcast(), on="country", uid="named")
    assert joined.schema.names == ["country", "n", "change"]
    assert not carries_changes(joined._graph.nodes, joined._port)


def test_the_table_does_not_hold_back_time() -> None:
    _, orders, countries = streams()
    node = orders.join(countries.broadcast(), on="country", uid="named")._graph.nodes[-1]
    assert node.time_inputs == node.inputs[:1]
    assert node.where.startswith("test_join_broadcast.py:")


def test_no_row_is_late_for_it() -> None:
    _, orders, countries = streams()
    joined = orders.join(countries.broadcast(), on="country", uid="named")
    for output in ("late_left", "late_right"):
        with pytest.raises(BuildError, match="'named' has no late rows"):
            getattr(joined, output)


def test_types_of_keys_must_agree() -> None:
    _, orders, countries = streams()
    with pytest.raises(SchemaError, match=r"\(n: int64\) and \(name: string\).*select or map"):
        orders.join(countries.broadcast(), left_on="n", right_on="name")


def test_a_table_of_another_job_is_refused() -> None:
    _, orders, _ = streams()
    _, _, countries = streams()
    with pytest.raises(BuildError, match="'countries' belongs to another Environment"):
        orders.join(countries.broadcast(), on="country")


def test_explain_tells_who_is_everywhere() -> None:
    env, orders, countries = streams()
    joined = orders.join(countries.broadcast(), on="country", how="left", uid="named")
    joined.sink_to(MemorySink(), uid="out")
    assert "left join beside all of the second by country and country" in env.explain()


def test_no_row_is_late() -> None:
    _, orders, countries = streams()
    joined = orders.join(countries.broadcast(), on="country", uid="named")
    with pytest.raises(BuildError, match="'named' has no late rows"):
        _ = joined.late_left
