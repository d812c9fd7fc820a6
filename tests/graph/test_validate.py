import pyarrow as pa
import pytest

from headrace._graph.validate import dangling, require_runnable, schema_differences
from headrace.errors import BuildError

LEFT = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        (LEFT, []),
        (LEFT.with_metadata({"k": "v"}), []),
        (pa.schema([("a", pa.int64())]), ["'b' is only in the first"]),
        (
            pa.schema([("a", pa.int32()), ("c", pa.string())]),
            [
                "'b' is only in the first",
                "'c' is only in the second",
                "'a' is int64 in the first and int32 in the second",
            ],
        ),
        (pa.schema([LEFT.field("b"), LEFT.field("a")]), ["the order is (a, b) and (b, a)"]),
    ],
)
def test_differences_of_schemas_are_parts_of_a_sentence(right, expected):
    assert schema_differences(LEFT, right) == expected


def test_nullability_is_no_difference():
    strict = pa.schema([field.with_nullable(False) for field in LEFT])
    assert schema_differences(LEFT, strict) == []


def test_dangling_steps_are_the_last_of_their_branch(env, bids, sink):
    bids.select("price").sink_to(sink)
    bids.select("auction").select("auction", uid="end")
    assert [node.uid for node in dangling(env.graph.nodes)] == ["end"]


def test_an_empty_graph_is_not_runnable():
    with pytest.raises(BuildError, match=r"'job' has no source; begin with env\.from_source"):
        require_runnable((), "job")
