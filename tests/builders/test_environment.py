import sys
import types
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headrace import aggregates, errors
from headrace.config import Epochs, Restart
from headrace.environment import Environment
from headrace.expressions import col
from headrace.watermarks import WatermarkStrategy
from headrace.windows import Tumbling

MONOTONOUS = WatermarkStrategy.monotonous()


@pytest.fixture
def launches(monkeypatch):
    """What was handed to the engine, which is not there."""
    made = []
    engine = types.ModuleType("headrace._jobs.launch")
    engine.start_job = lambda *given: made.append(given) or "handle"
    engine.run_job = lambda *given: made.append(given) or "summary"
    monkeypatch.setitem(sys.modules, "headrace._jobs.launch", engine)
    return made


def test_settings_hold_what_the_user_said(tmp_path):
    epochs, restart = Epochs(rows=10), Restart.never()
    env = Environment("job", checkpoint=tmp_path, shards=3, epochs=epochs, restart=restart)
    settings = env.settings()
    assert (settings.checkpoint, settings.shards) == (tmp_path, 3)
    assert (settings.epochs, settings.restart) == (epochs, restart)
    assert (settings.master, settings.session, settings.verbose) == (None, None, False)


@pytest.mark.parametrize("name", ["", "  ", 7, "two\nlines"])
def test_a_name_must_be_printable(name):
    with pytest.raises(errors.BuildError, match="name"):
        Environment(name)


@pytest.mark.parametrize("shards", [0, -1, 129, 1.5, True, "2"])
def test_shards_are_one_to_the_key_groups(shards):
    with pytest.raises(errors.BuildError, match="1 to 128"):
        Environment("job", shards=shards)


@pytest.mark.parametrize("checkpoint", ["s3://bucket/job", "hdfs://host/job", "", 7])
def test_a_checkpoint_is_a_local_path(checkpoint):
    with pytest.raises(errors.BuildError, match="checkpoint="):
        Environment("job", checkpoint=checkpoint)


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", 2])
def test_a_master_is_local(master):
    with pytest.raises(errors.BuildError, match="local"):
        Environment("job", master=master)


def test_a_master_and_a_session_exclude_each_other():
    with pytest.raises(errors.BuildError, match="not both"):
        Environment("job", master="local[2]", session=object())


@pytest.mark.parametrize("option", ["epochs", "restart"])
def test_settings_of_another_type_are_refused(option):
    with pytest.raises(errors.BuildError, match=rf"{option}= takes a headrace\.{option.title()}"):
        Environment("job", **{option: timedelta(seconds=1)})


def test_execute_without_a_checkpoint_says_how_to_give_one(env, bids, sink):
    bids.sink_to(sink, uid="out")
    with pytest.raises(errors.BuildError, match='checkpoint="path/to/directory"'):
        env.execute()


def test_execute_without_a_source_is_refused(tmp_path):
    with pytest.raises(errors.BuildError, match="no source"):
        Environment("job", checkpoint=tmp_path).execute()


def test_execute_without_a_sink_names_where_streams_end(env, bids):
    bids.filter(col("price") > 1)
    with pytest.raises(
        errors.BuildError, match=r"no sink.*'filter-1' \(test_environment\.py:\d+\)"
    ):
        env.plan()


def test_what_is_no_source_is_refused(env):
    with pytest.raises(errors.BuildError, match="from_source takes a source"):
        env.from_source("orders.csv")


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (pa.schema([]), "no columns"),
        (pa.schema([("a", pa.int64()), ("a", pa.string())]), "more than one column named 'a'"),
        (pa.schema([("__pane", pa.int64())]), "belong to the engine"),
    ],
)
def test_a_source_without_usable_columns_is_refused(env, source, schema, problem):
    with pytest.raises(errors.SchemaError, match=problem):
        env.from_source(source(schema))


def test_a_strategy_without_timestamps_names_the_columns_that_fit(env, bids, source):
    with pytest.raises(errors.BuildError, match=r"with_timestamps.*fit: date_time\."):
        env.from_source(source(bids.schema), watermarks=MONOTONOUS)


def test_an_unknown_timestamp_column_is_refused_with_the_fields(env, bids, source):
    strategy = MONOTONOUS.with_timestamps("datetime")
    with pytest.raises(errors.SchemaError, match=r"did you mean 'date_time'.*auction \(int64\)"):
        env.from_source(source(bids.schema), watermarks=strategy)


@pytest.mark.parametrize("timestamps", ["local_time", col("local_time")])
def test_naive_timestamps_are_refused(env, bids, source, timestamps):
    with pytest.raises(errors.SchemaError, match="naive"):
        env.from_source(source(bids.schema), watermarks=MONOTONOUS.with_timestamps(timestamps))


def test_a_timestamp_that_is_no_instant_is_refused(env, bids, source):
    with pytest.raises(errors.SchemaError, match="points in time, but 'price' is int64"):
        env.from_source(source(bids.schema), watermarks=MONOTONOUS.with_timestamps("price"))


def test_a_timestamp_function_may_read_only_fields_that_exist(env, bids, source):
    def moment(row) -> datetime:
        return row.when

    with pytest.raises(errors.SchemaError, match="no field 'when'"):
        env.from_source(source(bids.schema), watermarks=MONOTONOUS.with_timestamps(moment))


def test_a_strategy_of_another_type_is_refused(env, bids, source):
    with pytest.raises(errors.BuildError, match=r"watermarks= takes a headrace\.WatermarkStrategy"):
        env.from_source(source(bids.schema), watermarks="date_time")


def test_start_and_execute_hand_the_plan_and_the_settings_over(
    tmp_path, launches, bids, source, sink
):
    env = Environment("job", checkpoint=tmp_path)
    env.from_source(source(bids.schema), uid="rows").sink_to(sink, uid="out")
    assert (env.start(), env.execute()) == ("handle", "summary")
    for plan, settings in launches:
        assert (plan.job, settings.checkpoint) == ("job", tmp_path)


def test_steps_without_uid_and_without_sink_are_named_once(tmp_path, launches, bids, source, sink):
    env = Environment("job", checkpoint=tmp_path)
    stream = env.from_source(source(bids.schema))
    stream.filter(col("price") > 1).sink_to(sink, uid="out")
    stream.select("price")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env.start()
    unnamed, ends = (str(warning.message) for warning in caught)
    assert "source 'source-1'" in unnamed
    assert "filter-1" not in unnamed
    assert "select 'select-1'" in ends
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}


def test_the_plan_has_the_shards_that_were_asked_for(bids, source, sink):
    env = Environment("job", shards=3)
    env.from_source(source(bids.schema)).sink_to(sink)
    assert env.plan().shards == 3
    assert env.plan(shards=5).shards == 5


def test_an_example_of_the_whole(env, bids, sink):
    keyed = bids.key_by("auction").window(Tumbling(timedelta(seconds=10)))
    keyed.aggregate(highest=aggregates.max("price"), uid="highest").sink_to(sink, uid="out")
    assert [node.uid for node in env.graph.nodes] == ["bids", "highest", "out"]
    assert env.plan().stage_of == {1: 1}
