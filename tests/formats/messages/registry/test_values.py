"""What needs no server: registries as values, frames, and libraries that are absent."""

import pickle
import sys

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import BuildError, SetupError
from headrace.formats.messages import Avro, Protobuf, Raw, Registered, Registry
from headrace.formats.messages.packed import packed
from headrace.formats.messages.protobuf.indexes import cut, written
from headrace.formats.messages.registry.client import client_of
from headrace.formats.messages.registry.framing import by_schema, frame

LOGIN = "basic.auth.user.info"


def test_a_registry_is_a_value_that_travels() -> None:
    registry = Registry("http://localhost:8081/", {LOGIN: "env:LOGIN", "timeout": 5})
    assert registry == Registry("http://localhost:8081", {"timeout": "5", LOGIN: "env:LOGIN"})
    assert pickle.loads(pickle.dumps(registry)) == registry
    assert len({registry, pickle.loads(pickle.dumps(registry))}) == 1


def test_a_registry_shows_references_and_no_secrets() -> None:
    assert "env:LOGIN" in repr(Registry("http://localhost", {LOGIN: "env:LOGIN"}))
    secrets = {
        LOGIN: "ada:lovelace",
        "ssl.key.password": "lovelace",
        "bearer.auth.token": "lovelace",
    }
    shown = repr(Avro(registry=Registry("http://ada:lovelace@localhost", secrets)))
    assert "lovelace" not in shown
    assert "***" in shown


def test_a_registry_needs_a_url() -> None:
    with pytest.raises(BuildError, match="http://host:8081"):
        Registry("localhost:8081")


def test_only_json_is_framed_from_outside() -> None:
    registry = Registry("http://localhost:8081")
    with pytest.raises(BuildError, match="take registry= themselves"):
        Registered(Raw(), registry)  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="needs registry="):
        Registered()


def test_messages_are_parted_by_the_ids_in_their_frames() -> None:
    messages = [
        frame(7) + b"a",
        b"",
        frame(2**32 - 1),
        None,
        b"\x01" + frame(7),
        frame(7),
        b"\x00\x00",
    ]
    groups, bad = by_schema(packed(messages))
    found = {number: group.messages() for number, group in groups.items()}
    assert found == {7: [b"a", b""], 2**32 - 1: [b""]}
    assert groups[7].places.tolist() == [0, 5]
    assert [each.place for each in bad] == [1, 4, 6]
    assert by_schema(packed([])) == ({}, [])
    assert by_schema(packed([None]))[0] == {}


@pytest.mark.parametrize("place", [[0], [1], [0, 0], [3, 300, 2]])
def test_places_of_message_types_are_cut_off(place: list[int]) -> None:
    assert (written(place) == b"\x00") == (place == [0])
    good, bad = cut([written(place) + b"body"], lambda found: None if found == place else "other")
    assert (good, bad) == ([(0, b"body")], [])
    refused = cut([written(place)], lambda _: "other")[1]
    ended = cut([b"", b"\x04\x80"], lambda _: None)[1]
    assert refused == [(0, "other")]
    assert [number for number, _ in ended] == [0, 1]


def test_packed_messages_keep_their_places() -> None:
    there = packed([b"ab", None, b"", b"c"])
    assert there.messages() == [b"ab", b"", b"c"]
    assert there.places.tolist() == [0, 2, 3]
    assert there.only(np.array([False, True, True])).places.tolist() == [2, 3]


def test_absent_libraries_are_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(SetupError, match=r"pip install 'headrace\[kafka\]'"):
        Avro()
    monkeypatch.setitem(sys.modules, "confluent_kafka.schema_registry", None)
    with pytest.raises(SetupError, match=r"pip install 'headrace\[kafka\]'"):
        client_of(Registry("http://nobody.invalid"))
    schema = pa.schema([("id", pa.int64())])
    batch = pa.record_batch([[1]], schema=schema)
    assert Protobuf().encoder(schema)(batch).to_pylist() == [b"\x08\x01"]


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("http://localhost:1", {"no.such.option": "1"}, "no.such.option"),
        ("http://localhost:1", {"timeout": "soon"}, "soon"),
        ("http://localhost:1", {LOGIN: "lovelace"}, "username"),
        ("ftp://ada:lovelace@localhost", {}, "Invalid url"),
        ("http://localhost:1", {"ssl.ca.location": "/no/such/file"}, "No such file"),
    ],
)
def test_options_that_a_client_refuses_are_told_without_secrets(
    url: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(SetupError, match=said) as told:
        client_of(Registry(url, options))
    assert "lovelace" not in str(told.value)
