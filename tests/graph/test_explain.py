from datetime import timedelta

import pytest

from headrace import aggregates
from headrace.expressions import col
from headrace.windows import Hopping, Tumbling


@pytest.fixture
def text(env, bids, sink):
    dear = bids.filter(col("price") > 100, uid="dear")
    windowed = dear.key_by("auction").window(Tumbling(timedelta(seconds=10)))
    counted = windowed.allowed_lateness(timedelta(seconds=30)).aggregate(
        bids=aggregates.count(), top=aggregates.max("price"), uid="per-auction"
    )
    counted.sink_to(sink, uid="results")
    counted.late.sink_to(sink, uid="late")
    hops = counted.key_by("bids").window(Hopping(timedelta(minutes=2), timedelta(minutes=1)))
    hops.aggregate(n=aggregates.count(), uid="spread").sink_to(sink, uid="shape")
    bids.map_batches(lambda batch: batch, uid="unused")
    return env.explain()


def test_the_graph_shows_every_step_with_its_inputs(text):
    rows = {line.split()[0]: " ".join(line.split()) for line in _section(text, "graph")}
    assert list(rows) == "bids dear per-auction results late spread shape unused".split()
    assert rows["bids"].endswith("Nothing, watermarks 0:00:04 behind 'date_time'")
    assert "(col('price') > 100) <- bids" in rows["dear"]
    assert rows["per-auction"].endswith(
        "tumbling 0:00:10 by auction, 0:00:30 late at most:"
        " bids = count(), top = max('price') <- dear"
    )
    assert rows["late"].endswith("Void <- per-auction.late")
    assert "hopping 0:02:00 every 0:01:00 by bids" in rows["spread"]
    assert rows["unused"].endswith("(reaches no sink: not run)")


def test_the_stages_show_shuffles_and_where_steps_run(text):
    assert text.startswith("job 'job': 3 stages, 2 shuffles\n")
    assert [" ".join(line.split()) for line in _section(text, "stages")] == [
        "0 reads bids",
        "then dear, late",
        "feeds per-auction",
        "shuffle per-auction by auction",
        "1 hosts per-auction",
        "then results",
        "feeds spread",
        "shuffle spread by bids",
        "2 hosts spread",
        "then shape",
    ]


def test_a_job_without_keys_has_one_stage(env, bids, sink):
    bids.sink_to(sink, uid="out")
    assert env.explain().startswith("job 'job': 1 stage, 0 shuffles\n")


def test_an_empty_job_can_be_explained(env):
    assert env.explain().startswith("job 'job': 1 stage, 0 shuffles")


def _section(text, name):
    after = text.split(f"\n{name}\n")[1]
    return after.split("\n\n")[0].splitlines()
