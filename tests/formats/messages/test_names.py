"""Formats by their names, and what is imported for them."""

import subprocess
import sys

import pytest

from headrace.errors import BuildError
from headrace.formats import messages
from headrace.formats.messages import Csv, DebeziumJson, Json, Raw, String, message_format


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("json", Json),
        ("csv", Csv),
        ("raw", Raw),
        ("string", String),
        ("debezium-json", DebeziumJson),
    ],
)
def test_a_name_is_the_format_with_its_defaults(name: str, kind: type) -> None:
    assert message_format(name) == kind()
    assert message_format(name).name == name


def test_an_instance_is_itself() -> None:
    given = Json(timestamps="millis")
    assert message_format(given) is given


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(BuildError, match=r"'yaml'; there are json, csv, raw, string, avro"):
        message_format("yaml")


def test_formats_with_libraries_of_their_own_are_imported_when_asked_for() -> None:
    code = (
        "import sys, headrace.formats.messages as m; m.message_format('json');"
        "print([n for n in sys.modules if n.startswith(('fastavro', 'google.protobuf'))"
        " or n.endswith(('messages.avro', 'messages.protobuf'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_what_is_not_there_is_not_there() -> None:
    with pytest.raises(AttributeError, match="Yaml"):
        _ = messages.Yaml
