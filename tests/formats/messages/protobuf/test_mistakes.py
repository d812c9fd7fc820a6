"""Messages that cannot be rows, and types that are none: told by their place, and the others are read."""

import pyarrow as pa
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from headrace.errors import BuildError
from headrace.formats.messages import Protobuf


@pytest.mark.parametrize("bad", [3, 0, 19])
def test_an_instant_that_no_column_can_say_leaves_the_others_alone(bad: int) -> None:
    schema = pa.schema({"at": pa.timestamp("us", "UTC"), "n": pa.int64()})
    rows = pa.record_batch(
        [pa.array(range(20), pa.timestamp("us", "UTC")), pa.array(range(20))], schema=schema
    )
    messages = Protobuf().encoder(schema)(rows).to_pylist()
    far = Timestamp(seconds=2**62).SerializeToString()
    messages[bad] = b"\x0a" + bytes([len(far)]) + far
    decoded = Protobuf().decoder(schema)(messages)
    assert [(each.place, "too large" in each.cause) for each in decoded.bad] == [(bad, True)]
    good = [n for n in range(20) if n != bad]
    assert decoded.places.tolist() == decoded.batch.column("n").to_pylist() == good


def test_bad_messages_of_every_kind_stand_beside_good_ones() -> None:
    schema = pa.schema({"text": pa.string()})
    messages = [b"\x0a\x01a", b"\x0a\x01\xff", None, b"\x0a\x05b", b"\x0a\x01c"]
    decoded = Protobuf().decoder(schema)(messages)
    assert decoded.batch.to_pylist() == [{"text": "a"}, {"text": "c"}]
    assert decoded.places.tolist() == [0, 4]
    assert [each.place for each in decoded.bad] == [1, 2, 3]


def test_what_is_no_generated_class_is_refused() -> None:
    with pytest.raises(BuildError, match="no class that protoc generated"):
        Protobuf(dict)
