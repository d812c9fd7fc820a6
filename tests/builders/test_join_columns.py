"""The columns of a join's result, and keys that fit: the same for all joins, said of an interval join."""

from datetime import timedelta

import pyarrow as pa
import pytest

import headrace as hr
from headrace._graph.join_columns import joined_columns, result_schema_of
from headrace.errors import BuildError, SchemaError

SECOND = timedelta(seconds=1)
AT = pa.field("at", pa.timestamp("us", "UTC"))
LEFT = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.int64()), AT])
RIGHT = pa.schema([("id", pa.int64()), ("name", pa.string()), ("m", pa.int64()), AT])


def stream(env, source, schema, uid):
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    return env.from_source(source(schema), watermarks=strategy, uid=uid)


@pytest.fixture
def left(env, source):
    return stream(env, source, LEFT, "left")


@pytest.fixture
def right(env, source):
    return stream(env, source, RIGHT, "right")


def joined(left, right, suffix="_right", how="inner", **keys):
    pair = left.interval_join(right, **keys)
    return pair.between(-SECOND, SECOND, suffix=suffix, how=how)


def test_left_then_right_and_shared_keys_once(left, right):
    result = joined(left, right, on="id")
    assert result.schema.names == ["id", "name", "n", "at", "name_right", "m", "at_right"]
    result = joined(left, right, on=["id", "name"])
    assert result.schema.names == ["id", "name", "n", "at", "m", "at_right"]


def test_keys_with_other_names_stand_twice(left, right):
    result = joined(left, right, left_on="n", right_on="m")
    assert result.schema.names == [
        "id", "name", "n", "at", "id_right", "name_right", "m", "at_right",
    ]  # fmt: skip


def test_a_key_that_has_the_name_of_another_key_is_not_shared(left, right):
    # left.id = right.m, left.n = right.id: the two columns "id" are different keys.
    result = joined(left, right, left_on=["id", "n"], right_on=["m", "id"])
    assert result.schema.names == [
        "id", "name", "n", "at", "id_right", "name_right", "m", "at_right",
    ]  # fmt: skip


def test_the_suffix_can_be_chosen(left, right):
    result = joined(left, right, on="id", suffix="_2")
    assert result.schema.names == ["id", "name", "n", "at", "name_2", "m", "at_2"]


def test_columns_that_are_there_already_are_told(env, source, left):
    right = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("n_right", pa.int64()), AT])
    other = stream(env, source, right, "other")
    with pytest.raises(
        BuildError, match=r"two columns 'n_right'; pass another suffix=, or rename one with select"
    ):
        joined(left, other, on="id")
    assert joined(left, other, on="id", suffix="_o").schema.names[-3:] == ["n_o", "n_right", "at_o"]


def test_without_a_suffix_no_name_may_be_taken(left, right):
    with pytest.raises(BuildError, match=r"two columns 'name'; pass another suffix="):
        joined(left, right, on="id", suffix="")
    assert joined(left, right.select("id", "m"), on="id", suffix="").schema.names == [
        *LEFT.names,
        "m",
    ]


def test_types_stay_as_they_are(env, source):
    left = pa.schema([("id", pa.int64()), ("x", pa.float32()), AT])
    right = pa.schema([("id", pa.int64()), ("x", pa.list_(pa.string())), AT])
    result = joined(
        stream(env, source, left, "l"), stream(env, source, right, "r"), on="id", how="full"
    )
    assert result.schema.field("x").type == pa.float32()
    assert result.schema.field("x_right").type == pa.list_(pa.string())


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, r'A join needs keys: on="id", or left_on= and right_on=, or streams with key_by'),
        ({"on": "id", "left_on": "id"}, "on= for keys with equal names, or left_on= and right_on="),
        ({"left_on": "id"}, "left_on= and right_on= together"),
        ({"right_on": "id"}, "left_on= and right_on= together"),
        ({"left_on": ["id", "n"], "right_on": "id"}, "need as many columns as each other"),
        ({"on": []}, "join needs columns. The fields are"),
        ({"on": ["id", "id"]}, "join names 'id' twice"),
        ({"on": lambda row: row.id}, r"names of columns, not <function.*call key_by\(function\) on both"),
        ({"on": 7}, "names of columns, not 7"),
        ({"left_on": ["id", None], "right_on": "id"}, r"names of columns, not \['id', None\]"),
        ({"on": "idd"}, r"'idd'.*id"),
        ({"on": "n"}, r"'n'"),
    ],
)  # fmt: skip
def test_keys_that_cannot_be_are_refused(left, right, keys, told):
    with pytest.raises((BuildError, SchemaError), match=told):
        left.interval_join(right, **keys)


def test_keyed_streams_need_keys_of_as_many_columns(left, right):
    with pytest.raises(BuildError, match="need keys of as many columns as each other"):
        left.key_by("id", "n").interval_join(right.key_by("id"))
    with pytest.raises(BuildError, match=r"streams with key_by\(...\) on all sides"):
        left.key_by("id").interval_join(right)
    # What is said goes before what was said of one of them.
    result = (
        left.key_by("id").interval_join(right, left_on="n", right_on="m").between(-SECOND, SECOND)
    )
    assert result._graph.nodes[-1].keys == (("n",), ("m",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.int32()),
        (pa.string(), pa.binary()),
        (pa.float64(), pa.int64()),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
    ],
)
def test_keys_need_the_same_types(env, source, one, other):
    sides = [
        stream(env, source, pa.schema([("key", kind), AT]), uid)
        for kind, uid in ((one, "l"), (other, "r"))
    ]
    with pytest.raises(
        SchemaError, match=r"need the same types.*Make them alike with select or map"
    ):
        joined(*sides, on="key")


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct({"x": pa.int64()})])
def test_types_that_are_no_keys_are_refused(env, source, kind):
    schema = pa.schema([("key", kind), AT])
    sides = [stream(env, source, schema, uid) for uid in ("l", "r")]
    with pytest.raises(SchemaError, match=r"join: 'key' is .*cannot be a key"):
        joined(*sides, on="key")


def test_columns_of_one_side_and_of_several():
    schemas = [LEFT.remove(3), RIGHT.remove(3), RIGHT.remove(3)]
    keys = [("id",)] * 3
    names = [column.name for column in joined_columns(schemas, keys, "inner")]
    assert names == ["id", "name", "n", "name_right", "m", "name_right2", "m_right2"]
    assert [c.name for c in joined_columns(schemas[:2], keys[:2], "semi")] == ["id", "name", "n"]
    assert [c.name for c in joined_columns(schemas[:2], keys[:2], "anti")] == ["id", "name", "n"]
    shared = joined_columns(schemas, keys, "inner")[0]
    assert shared.origins == ((0, "id"), (1, "id"), (2, "id"))


def test_a_column_that_a_join_adds_must_be_free():
    columns = joined_columns([LEFT], [("id",)], "inner")
    with pytest.raises(BuildError, match=r"adds the column 'n'.*rename it first: select\("):
        result_schema_of(columns, [LEFT], [pa.field("n", pa.int64())])
