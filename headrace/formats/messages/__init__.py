"""Message formats: what a log holds, as Arrow columns and back.

Those that need a library of their own are imported when they are asked for.
"""

from importlib import import_module
from typing import Any

from headrace.errors import BuildError
from headrace.formats.messages.csv import Csv
from headrace.formats.messages.format import MessageFormat
from headrace.formats.messages.json import Json
from headrace.formats.messages.plain import Raw, String

__all__ = [
    "Avro",
    "Csv",
    "DebeziumAvro",
    "DebeziumJson",
    "Json",
    "MessageFormat",
    "Protobuf",
    "Raw",
    "Registered",
    "Registry",
    "String",
    "message_format",
]

_NAMES = {
    "json": "Json",
    "csv": "Csv",
    "raw": "Raw",
    "string": "String",
    "avro": "Avro",
    "protobuf": "Protobuf",
    "debezium-json": "DebeziumJson",
    "debezium-avro": "DebeziumAvro",
}
_LATER = {
    "Avro": "avro",
    "Protobuf": "protobuf",
    "DebeziumAvro": "debezium",
    "DebeziumJson": "debezium",
    "Registered": "registry",
    "Registry": "registry",
}


def message_format(name: str | MessageFormat) -> MessageFormat:
    """The format of this name with nothing said about it, or the one that is given."""
    if isinstance(name, MessageFormat):
        return name
    if name not in _NAMES:
        raise BuildError(f"there is no message format {name!r}; there are {', '.join(_NAMES)}")
    kind = globals().get(_NAMES[name]) or __getattr__(_NAMES[name])
    made: MessageFormat = kind()
    return made


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
