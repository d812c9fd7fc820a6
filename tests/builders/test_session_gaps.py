"""The gap of each row is checked where it is said."""

from datetime import timedelta

import pyarrow as pa
import pytest

from headrace import aggregates, col
from headrace.errors import SchemaError
from headrace.windows import Session


@pytest.fixture
def keyed(env, source):
    columns = {"key": pa.string(), "gap": pa.duration("ms"), "size": pa.int64()}
    return env.from_source(source(pa.schema(columns))).key_by("key")


@pytest.mark.parametrize("gap", ["gap", col("gap"), lambda row: timedelta(seconds=row.size)])
def test_a_gap_may_be_a_column_an_expression_or_a_function(keyed, gap):
    result = keyed.window(Session.dynamic(gap, time="processing")).aggregate(n=aggregates.count())
    assert "window_end" in result.schema.names


@pytest.mark.parametrize("gap", ["size", col("size") * 2])
def test_a_gap_that_is_no_duration_is_refused(keyed, gap):
    with pytest.raises(SchemaError, match=r"must be a duration .* is int64"):
        keyed.window(Session.dynamic(gap, time="processing"))


@pytest.mark.parametrize("gap", ["gab", col("gab"), lambda row: row.gab])
def test_a_gap_of_a_field_that_is_not_there_is_refused(keyed, gap):
    with pytest.raises(SchemaError, match="gab"):
        keyed.window(Session.dynamic(gap, time="processing"))
