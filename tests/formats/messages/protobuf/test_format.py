"""Protobuf messages without a registry, with Protobuf's own classes as the other side."""

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from headrace.errors import BuildError, SinkRefused
from headrace.formats.messages.protobuf.derived import derived_files
from headrace.formats.messages.protobuf.files import message_class
from headrace.formats.messages.protobuf.format import Protobuf
from headrace.formats.messages.protobuf.text import parsed_proto

ORDERS = """
    // A file as people write it.
    syntax = "proto3";
    package shop;
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    option java_package = "x.y";
    message Customer { string name = 1; optional int32 age = 2 [deprecated = true]; }
    /* The message
       that is read. */
    message Order {
      reserved 20 to 30;
      message Item { uint32 count = 1; bytes code = 2; }
      enum State { option allow_alias = false; NEW = 0; PAID = 1; ODD = -1; }
      int64 id = 1;
      optional double amount = 2;
      State state = 3;
      Customer customer = 4;
      repeated Item items = 5;
      map<string, sint64> counts = 6;
      google.protobuf.Timestamp at = 7;
      google.protobuf.StringValue note = 8;
      repeated float weights = 9;
      oneof pay { string card = 10; bool cash = 11; }
      fixed64 big = 12;
    }
    service Shop { rpc Buy (Order) returns (Customer) { option x = 1; } }
"""


def files(text: str, name: str = "orders.proto") -> bytes:
    file = parsed_proto(text)
    file.name = name
    return bytes(FileDescriptorSet(file=[file]).SerializeToString())


@pytest.fixture(scope="module")
def order() -> Any:
    return message_class(files(ORDERS), "shop.Order")


def rows_of(decoded: Any) -> list[dict[str, Any]]:
    return list(decoded.batch.to_pylist())


AT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
FULL: dict[str, Any] = {
    "id": 7,
    "amount": 2.5,
    "state": "PAID",
    "customer": {"name": "Ada", "age": None},
    "items": [{"count": 1, "code": b"\x00"}, {"count": 2, "code": b""}],
    "counts": [("a", -1), ("b", 2)],
    "at": AT,
    "note": "hello",
    "weights": [0.5, 0.25],
    "card": "visa",
    "cash": None,
    "big": 2**63,
}
EMPTY: dict[str, Any] = {
    "id": 0,
    "amount": None,
    "state": "NEW",
    "customer": None,
    "items": [],
    "counts": [],
    "at": None,
    "note": None,
    "weights": [],
    "card": None,
    "cash": None,
    "big": 0,
}


def test_every_kind_of_field_is_read(order: Any) -> None:
    format = Protobuf(order)
    full = order(
        id=7,
        amount=2.5,
        state="PAID",
        customer={"name": "Ada"},
        items=[{"count": 1, "code": b"\x00"}, {"count": 2}],
        counts={"b": 2, "a": -1},
        note={"value": "hello"},
        weights=[0.5, 0.25],
        card="visa",
        big=2**63,
    )
    full.at.FromDatetime(AT)
    decoded = format.decoder(format.row_schema(None))(
        [full.SerializeToString(), order().SerializeToString()]
    )
    decoded.batch.validate(full=True)
    assert rows_of(decoded) == [FULL, EMPTY]


def test_what_is_written_is_what_protobuf_reads(order: Any) -> None:
    format = Protobuf(order)
    schema = format.row_schema(None)
    batch = pa.RecordBatch.from_pylist([EMPTY, FULL, EMPTY], schema).slice(1)
    messages = format.encoder(schema)(batch).to_pylist()
    read = order.FromString(messages[0])
    assert (read.id, read.state, read.at.ToDatetime(UTC), read.note.value) == (7, 1, AT, "hello")
    assert dict(read.counts) == {"a": -1, "b": 2}
    assert not read.customer.HasField("age")
    assert messages[1] == b""
    assert rows_of(format.decoder(schema)(messages)) == [FULL, EMPTY]


def test_columns_make_a_message_type_in_which_nulls_are_kept() -> None:
    schema = pa.schema(
        [
            ("id", pa.int16()),
            ("flag", pa.bool_()),
            ("text", pa.string()),
            ("at", pa.timestamp("ns", "UTC")),
            ("long", pa.duration("us")),
            ("tags", pa.list_(pa.string())),
            ("place", pa.struct([("x", pa.float32()), ("inner", pa.struct([("y", pa.uint64())]))])),
            ("counts", pa.map_(pa.string(), pa.int64())),
        ]
    )
    full = {
        "id": -5,
        "flag": False,
        "text": "",
        "at": pa.scalar(-1, pa.timestamp("ns", "UTC")),
        "long": timedelta(seconds=-1, microseconds=1),
        "tags": ["a", "b"],
        "place": {"x": 0.5, "inner": {"y": 1}},
        "counts": [("k", 1)],
    }
    nothing = dict.fromkeys(schema.names) | {"tags": [], "counts": []}
    batch = pa.RecordBatch.from_pylist([full, nothing], schema)
    Protobuf().check_writable(schema)
    messages = Protobuf().encoder(schema)(batch).to_pylist()
    assert Protobuf().decoder(schema)(messages).batch.equals(batch)


def test_bad_messages_are_told_by_their_places(order: Any) -> None:
    format = Protobuf(order)
    good = order(id=1).SerializeToString()
    decoded = format.decoder(format.row_schema(None))([good, b"\xff\xff", None, good])
    assert decoded.places.tolist() == [0, 3]
    assert [bad.place for bad in decoded.bad] == [1, 2]
    assert "tombstone" in decoded.bad[1].cause


def test_declared_columns_may_be_fewer_wider_or_new(order: Any) -> None:
    format = Protobuf(order)
    schema = pa.schema([("new", pa.string()), ("state", pa.int64()), ("at", pa.timestamp("ms"))])
    message = order(state="PAID", at={"seconds": 1, "nanos": 5_999_999})
    decoded = format.decoder(format.row_schema(schema))([message.SerializeToString()])
    assert rows_of(decoded) == [
        {"new": None, "state": 1, "at": datetime(1970, 1, 1, 0, 0, 1, 5000)}
    ]


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("id", pa.string(), "id: int64, but it is declared as string"),
        ("items", pa.int64(), "items: repeated shop.Order.Item"),
        ("customer", pa.struct([("name", pa.int32())]), "customer.name: string"),
        ("at", pa.int64(), "at: google.protobuf.Timestamp"),
        ("big", pa.int32(), "big: fixed64"),
    ],
)
def test_other_types_are_refused_with_the_field(
    order: Any, name: str, kind: pa.DataType, told: str
) -> None:
    with pytest.raises(BuildError, match=told):
        Protobuf(order).row_schema(pa.schema([(name, kind)]))


def test_a_message_inside_itself_is_no_column() -> None:
    tree = files('syntax = "proto3"; message Tree { int32 n = 1; Tree left = 2; }')
    with pytest.raises(BuildError, match="field 'left' is a Tree inside itself"):
        Protobuf(descriptor=tree, type="Tree").row_schema(None)
    assert Protobuf(descriptor=tree).row_schema(pa.schema([("n", pa.int64())])).names == ["n"]


@pytest.mark.parametrize("kind", [pa.date32(), pa.decimal128(5, 2), pa.list_(pa.list_(pa.int64()))])
def test_columns_without_a_form_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(BuildError, match=r"field 'x': Protobuf has no form for .*; convert it"):
        Protobuf().check_writable(pa.schema([("x", kind)]))


def test_a_row_that_does_not_fit_is_refused(order: Any) -> None:
    format = Protobuf(order)
    schema = pa.schema([("state", pa.string())])
    with pytest.raises(SinkRefused, match=r"shop\.Order"):
        format.encoder(schema)(pa.record_batch([["LOST"]], schema=schema))
    with pytest.raises(BuildError, match="column 'other' is no field"):
        format.check_writable(pa.schema([("other", pa.string())]))


def test_a_negative_duration_has_one_sign() -> None:
    """Other clients refuse one whose seconds and nanoseconds have different signs."""
    schema = pa.schema({"d": pa.duration("us")})
    spans = [timedelta(seconds=-1.5), timedelta(microseconds=-1), timedelta(seconds=1.5)]
    written = Protobuf().encoder(schema)(pa.record_batch([pa.array(spans)], schema=schema))
    kind = message_class(derived_files(schema), None)
    parts = [(m.d.seconds, m.d.nanos) for m in map(kind.FromString, written.to_pylist())]
    assert parts == [(-1, -500_000_000), (0, -1000), (1, 500_000_000)]
    assert [row["d"] for row in rows_of(Protobuf().decoder(schema)(written.to_pylist()))] == spans


def test_maps_whose_names_differ_in_capitals_are_two() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    schema = pa.schema({"byName": kind, "byname": kind})
    message = message_class(derived_files(schema), None).DESCRIPTOR
    assert [each.name for each in message.nested_types] == ["ByNameEntry", "BynameEntry"]


def test_descriptors_come_as_path_bytes_or_class(order: Any, tmp_path: Path) -> None:
    path = tmp_path / "orders.desc"
    path.write_bytes(files(ORDERS))
    by_path = Protobuf(descriptor=path, type="shop.Order")
    assert by_path == Protobuf(descriptor=files(ORDERS), type="shop.Order")
    again = pickle.loads(pickle.dumps(Protobuf(order)))
    assert again.row_schema(None) == by_path.row_schema(None)
    with pytest.raises(
        BuildError, match=r"no message type 'shop.Nothing'.*shop\.Customer, shop\.Order"
    ):
        Protobuf(descriptor=path, type="shop.Nothing")
    with pytest.raises(BuildError, match="cannot be read"):
        Protobuf(descriptor=tmp_path / "absent", type="shop.Order")


def test_text_and_descriptor_agree(order: Any) -> None:
    """What the parser of text makes is accepted and resolved by Protobuf's own pool."""
    pool = descriptor_pool.DescriptorPool()
    tricky = parsed_proto(
        'syntax = "proto2"; package a.b; message M { required group_ x = 1; enum E { A = 0x10; }'
        " optional E e = 2 [default = A]; extensions 100 to max; } message group_ { optional .a.b.M m = 1; };"
    )
    tricky.name = "tricky.proto"
    pool.Add(tricky)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("a.b.M"))
    assert kind.DESCRIPTOR.fields_by_name["e"].enum_type.values_by_name["A"].number == 16
    assert kind.DESCRIPTOR.fields_by_name["x"].message_type.full_name == "a.b.group_"
