"""Writes the page of connectors: what each can be, and every option of each with its type and default.

Names, types and defaults come from the signatures, what formats can do from a row that goes there and back. Only
the sentences are written by hand; an option without one, or one without an option, ends the generation.

    python docs/generate/options.py
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pyarrow as pa

import headrace.formats
from headrace import lookups
from headrace.connectors import console, databases, files, generator, kafka, memory
from headrace.endpoints import DeliveryGuarantee, Sink, Source
from headrace.formats import messages

__all__ = ["PAGE", "on_pre_build", "page"]

PAGE = Path(__file__).parents[1] / "reference" / "connectors.md"

#: Package -> title; its public classes are on the page, in this order.
PACKAGES = {
    kafka: "Kafka",
    databases: "Databases",
    files: "Files",
    generator: "Generator",
    memory: "Memory",
    console: "Console",
}
#: What only tests and the engine need.
LEFT_OUT = {"Cut", "Fail", "MessageFormat", "message_format"}

_DSN = "The connection string, or `env:NAME` or `file:PATH` where it stands."
_TABLE = "The table, or `schema.table`; quote a name that has a dot in it."
_SQL_OPTIONS = "Options of the driver (libpq's, PyMySQL's), such as `password`; values may be `env:NAME` or `file:PATH`."
_KAFKA_OPTIONS = (
    "Options of librdkafka, such as `security.protocol`; values may be `env:NAME` or `file:PATH`."
)
_REGISTRY = "Where the schemas of framed messages are; without it messages have no frame."
_SUBJECT = "The subject to write under and to take columns from; `<topic>-value` if it is not said."
_COLUMNS = "The columns of a row: a dataclass, a `TypedDict` or an Arrow schema"
_PACE = "Rows per second of wall clock; off by default."
_PARTITIONS = "Source partitions, each with a watermark of its own."

_TABLE_SINK = {
    "dsn": _DSN,
    "table": _TABLE,
    "mode": "Only add rows, or replace the one with the same key (and delete it on `-D`).",
    "key": "The columns that an upsert finds rows by; they need a unique index.",
    "create": "Make the table if it is not there, with `key` as its primary key.",
    "marker_table": "Where the sink notes which epoch the table shows; made if it is missing.",
    "options": _SQL_OPTIONS,
}
_TABLE_SOURCE = {
    "dsn": _DSN,
    "table": _TABLE,
    "query": "A `SELECT` instead of a table.",
    "schema": f"{_COLUMNS}; without one they are the server's, asked when the pipeline is built.",
    "partition_column": "The column whose ranges are read side by side: whole numbers, decimals, dates or timestamps.",
    "partitions": "How many ranges of equal length; rows without a value are one more.",
    "max_partitions_per_epoch": "At most so many ranges in an epoch.",
    "options": _SQL_OPTIONS,
}

_TABLE_LOOKUP = {
    "dsn": _DSN,
    "table": _TABLE,
    "key": "The column or columns to look up by; they are unique in the table.",
    "columns": "The columns of a row; all if it is not said.",
    "cache": "What each worker process keeps; `None`: every key is asked for again.",
    "batch_size": "At most so many keys to a query.",
    "options": _SQL_OPTIONS,
}

SENTENCES: dict[str, dict[str, str]] = {
    "KafkaSource": {
        "bootstrap": "Brokers, `host:9092`, several with commas.",
        "topics": "A topic or several.",
        "pattern": "A regular expression instead, which names of topics match as a whole; new ones join in.",
        "schema": f"{_COLUMNS}; formats that know them (raw, string, registry) can do without.",
        "format": "What a message holds, by name or as an object.",
        "start": "Where the first start begins; later ones go on from the checkpoint.",
        "stop": "Where the source ends; without it never. A start with another `stop` follows the new one.",
        "metadata": "Columns to add: `topic`, `partition`, `offset`, `timestamp`, `timestamp_type`, `key`, `headers`; a mapping gives them other names.",
        "key_format": "The metadata column `key` as bytes or as text.",
        "group": "The consumer group that offsets of durable epochs are committed to, for lag tools; the job never reads them.",
        "isolation": "Whether records of open and aborted transactions are left out.",
        "max_rows_per_epoch": "At most so many records in an epoch.",
        "min_rows": "Wait for so many records before an epoch, at most `max_delay`.",
        "max_delay": "How long `min_rows` are waited for.",
        "on_decode_error": "What becomes of a record that the format cannot read.",
        "on_data_loss": "What becomes of a gap: records that were deleted before they were read.",
        "discover_every": "How often new partitions and topics are looked for.",
        "read_timeout": "How long a read waits for brokers that do not answer before the epoch fails and is run again.",
        "options": _KAFKA_OPTIONS,
    },
    "KafkaSink": {
        "bootstrap": "Brokers, `host:9092`, several with commas.",
        "topic": "Where rows go.",
        "topic_column": "A column that names the topic of each row instead; it is left out of the value.",
        "format": "How values are written, by name or as an object.",
        "key": "The column or columns of the key: one as text, several as a JSON object.",
        "key_format": "How keys are written instead: any message format, or `string`.",
        "partition_by": "An integer column with the partition itself.",
        "headers": "A column of maps (or lists of key and value) that become headers; it is left out of the value.",
        "timestamp": "A column of instants that become the timestamps of records.",
        "guarantee": "Exactly once in transactions, at least once, or none.",
        "mode": "Every row is a record, or the last record of a key is true and `-D` a tombstone.",
        "lanes": "Transactions side by side, 1 to 64, fixed at the first start; the topic's partitions, at most 4, if it is not said.",
        "create": "How a topic that is not there is made; without it the job refuses to start.",
        "transaction_timeout": "After so long the broker aborts a transaction that nobody ends; at most its `transaction.max.timeout.ms`.",
        "control_topic": "The compacted topic of the markers, fixed at the first start; made if it is missing.",
        "options": _KAFKA_OPTIONS,
    },
    "NewTopic": {
        "partitions": "How many partitions.",
        "replication": "How many replicas; the broker's own default if it is not said.",
        "settings": "Settings of the topic, such as `cleanup.policy`.",
    },
    "Committed": {
        "group": "The consumer group whose offsets the job begins at.",
        "otherwise": "Where partitions begin that the group has no offset for.",
    },
    "PostgresSink": _TABLE_SINK,
    "MySqlSink": _TABLE_SINK,
    "PostgresSource": _TABLE_SOURCE,
    "MySqlSource": _TABLE_SOURCE,
    "PostgresLookup": {
        **_TABLE_LOOKUP,
        "connections": "At most so many connections of each worker process.",
    },
    "MySqlLookup": _TABLE_LOOKUP,
    "Cache": {
        "size": "So many keys, those that were used last.",
        "ttl": "How long an entry is good; for ever if it is not said.",
        "negative": "Also keep that a key has no row.",
        "clock": "Seconds; for tests.",
    },
    "FileTable": {
        "path": "A file, or a directory of which all files of the format make the table.",
        "key": "The column or columns that rows are found by; a key may have several rows.",
        "format": "`parquet`, `csv` or `jsonl`; without it the ending of the path tells, and a directory is `parquet`.",
        "schema": f"{_COLUMNS}; without one they are told from the files when the pipeline is built.",
        "columns": "The columns that a join shows; all if it is not said.",
        "check_every": "How often it is looked whether the files have changed; `None`: they are read once.",
    },
    "FileSource": {
        "path": "A directory, one file, or a pattern with `*`.",
        "format": "`parquet`, `jsonl` or `csv`.",
        "schema": f"{_COLUMNS}.",
        "bounded": "End with the files that are there at the first start, or watch for new ones.",
        "max_files_per_epoch": "At most so many files in an epoch.",
        "on_error": "What becomes of a record that does not fit the schema.",
        "poll_interval": "How often new files are looked for.",
    },
    "FileSink": {
        "path": "The directory; made if it is missing.",
        "format": "`parquet`, `jsonl` or `csv`.",
        "roll_interval": "Hold epochs back for so long and show them as one file.",
    },
    "Function": {
        "declared": "The columns, an Arrow schema.",
        "function": "Makes the rows from the first to behind the last number.",
        "rows": "How many in all; `None`: no end.",
        "partitions": _PARTITIONS,
        "rate_limit": _PACE,
    },
    "Nexmark": {
        "events": "How many in all; `None`: no end.",
        "seed": "Every value follows from it and from the number of the event.",
        "event_rate": "Events per second of event time.",
        "disorder": "Every event is moved back in time by less than this.",
        "late": "Share of the events that are 5 to 60 s older on top.",
        "partitions": _PARTITIONS,
        "rate_limit": _PACE,
        "start": "The event time of the first event.",
    },
    "MemorySource": {
        "rows": "Dataclass instances, dicts or an Arrow table.",
        "schema": f"{_COLUMNS}; found in the rows if it is not said.",
        "partitions": "A list of such rows for each partition instead.",
        "timestamps": "The records' own timestamps, one a row.",
        "bounded": "Whether the job ends behind the last row.",
    },
    "ConsoleSink": {
        "limit": "Rows of an epoch that are printed.",
        "file": "Where to; standard output if it is not said.",
    },
    "Avro": {
        "schema": "The schema of your own, JSON: it gives aliases and defaults to readers; derived from the columns if it is not said.",
        "registry": _REGISTRY,
        "subject": _SUBJECT,
    },
    "Csv": {"delimiter": "What stands between two values."},
    "DebeziumAvro": {
        "schema": "The schema of the envelope, JSON, where there is no registry.",
        "registry": _REGISTRY,
        "subject": _SUBJECT,
    },
    "DebeziumJson": {
        "timestamps": "What a number means in a column of instants, where messages do not carry their schema.",
        "decimals": "Debezium's `decimal.handling.mode`, likewise.",
    },
    "Json": {"timestamps": "Instants as ISO 8601, or as numbers since 1970."},
    "Protobuf": {
        "message": "A generated class.",
        "descriptor": "Or the bytes or path of what `protoc --include_imports -o` writes.",
        "type": "The message in the descriptor, `package.Name`.",
        "registry": _REGISTRY,
        "subject": _SUBJECT,
    },
    "Registered": {
        "format": "The JSON inside the frame.",
        "registry": "Where the JSON Schemas are; always needed.",
        "subject": _SUBJECT,
    },
    "Registry": {
        "url": "The root of Confluent's interface.",
        "options": "Options of confluent-kafka's client, such as `basic.auth.user.info`; values may be `env:NAME` or `file:PATH`.",
    },
}

#: What rows of a source are, if the job is killed; what a sink promises, where it is no option.
GUARANTEES = {
    "KafkaSource": "exactly once",
    "PostgresSource": "exactly once, if rows that are read do not change",
    "MySqlSource": "exactly once, if rows that are read do not change",
    "FileSource": "exactly once",
    "Function": "exactly once, if the function is one",
    "Nexmark": "exactly once",
    "MemorySource": "exactly once",
    "PostgresSink": "exactly once",
    "MySqlSink": "exactly once",
    "FileSink": "exactly once",
    "MemorySink": "exactly once",
    "ConsoleSink": "at least once",
    "PostgresLookup": "as of the moment of the question",
    "MySqlLookup": "as of the moment of the question",
}


def page() -> str:
    """The whole page."""
    lines = [
        "# Connectors and their options",
        "",
        "Generated by `python docs/generate/options.py`; a test compares it with the code. Guides: [Kafka](../guide/kafka.md),",
        "[PostgreSQL](../guide/postgresql.md), [the others](../guide/sources-and-sinks.md), [one of your own](../guide/write-your-own-sink.md).",
        "",
        *_support(),
        *_formats(),
    ]
    written = set()
    for title, classes in _sections():
        lines += [f"## {title}", ""]
        for kind in classes:
            lines += _options(kind)
            written.add(kind.__name__)
    stray = sorted(SENTENCES.keys() - written)
    if stray:
        raise SystemExit(f"there are sentences for {stray}, which are not public")
    return "\n".join(lines).rstrip("\n") + "\n"


def on_pre_build(**_: Any) -> None:
    """Called by the docs build."""
    if not PAGE.exists() or PAGE.read_text() != page():
        PAGE.write_text(page())


def _sections() -> Iterator[tuple[str, list[type]]]:
    for package, title in PACKAGES.items():
        yield title, [kind for kind in _public(package) if _parameters(kind)]
    yield "Look-ups", [lookups.Cache, lookups.FileTable]
    yield "Message formats", [kind for kind in _public(messages) if _parameters(kind)]


def _public(package: Any) -> list[type]:
    names = sorted(set(package.__all__) - LEFT_OUT)
    return [getattr(package, name) for name in names]


def _support() -> list[str]:
    lines = [
        "## What is there",
        "",
        "| | source | sink | look-up | guarantee |",
        "|---|---|---|---|---|",
    ]
    found = [kind for package in PACKAGES for kind in _public(package)]
    roles = (Source, Sink, lookups.LookupFunction)
    for kind in found:
        # Nexmark is no source itself; its events are.
        made = type(kind(1).bids()) if kind is generator.Nexmark else kind
        cells = ["yes" if issubclass(made, role) else "" for role in roles]
        if any(cells):
            lines.append(
                f"| `{_module(kind)}.{kind.__name__}` | {' | '.join(cells)} | {_guarantee(kind)} |"
            )
    return [*lines, ""]


def _guarantee(kind: type) -> str:
    if "guarantee" in _parameters(kind):
        words = [each.value.replace("_", " ") for each in DeliveryGuarantee]
        return f"{', '.join(words[:-1])} or {words[-1]}, by choice"
    return GUARANTEES[kind.__name__]


def _formats() -> list[str]:
    lines = [
        "| message format | by name | reads | writes | changes | registry |",
        "|---|---|---|---|---|---|",
    ]
    for kind in _public(messages):
        if not issubclass(kind, messages.MessageFormat):
            continue
        reads, writes = _there_and_back(kind)
        flags = reads, writes, kind.changes, "registry" in _parameters(kind)
        cells = " | ".join("yes" if flag else "" for flag in flags)
        name = f'`"{kind.name}"`' if kind.name in messages._NAMES else ""  # noqa: SLF001
        lines.append(f"| `messages.{kind.__name__}` | {name} | {cells} |")
    named = ", ".join(f"`{name}`" for name in headrace.formats._FORMATS)  # noqa: SLF001
    return [*lines, "", f"Files are {named}, each read and written.", ""]


def _there_and_back(kind: type[messages.MessageFormat]) -> tuple[bool, bool]:
    """Whether rows can be written and read again, seen by doing it."""
    plain = messages.Json() if kind is messages.Registered else _made(kind)
    one = issubclass(kind, messages.Raw | messages.String)
    declared = None if one else pa.schema({"id": pa.int64(), "name": pa.string()})
    schema = plain.row_schema(declared)
    samples: dict[str, Any] = {"id": 1, "name": "ada", "change": "+I", "value": "text"}
    row = {field.name: pa.scalar(samples[field.name]).cast(field.type).as_py() for field in schema}
    sent = plain.encoder(schema)(pa.RecordBatch.from_pylist([row], schema=schema))
    came = plain.decoder(schema)(sent.to_pylist())
    return came.batch.to_pylist() == [row], sent.null_count == 0


def _made(kind: type[messages.MessageFormat]) -> messages.MessageFormat:
    if kind is not messages.DebeziumAvro:
        return kind()
    row = {
        "type": "record",
        "name": "Value",
        "fields": [
            {"name": "id", "type": ["null", "long"]},
            {"name": "name", "type": ["null", "string"]},
        ],
    }
    fields = [
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ]
    return messages.DebeziumAvro(
        schema=json.dumps({"type": "record", "name": "Envelope", "fields": fields})
    )


def _options(kind: type) -> list[str]:
    name = kind.__name__
    parameters, types, told = _parameters(kind), _types(kind), SENTENCES.get(name, {})
    missing, stray = parameters.keys() - told.keys(), told.keys() - parameters.keys()
    if missing or stray:
        raise SystemExit(
            f"{name}: options without a sentence {sorted(missing)}, sentences without an option {sorted(stray)}"
        )
    lines = [
        f"### `{_module(kind)}.{name}`",
        "",
        "| option | type | default | |",
        "|---|---|---|---|",
    ]
    for option, parameter in parameters.items():
        lines.append(
            f"| `{option}` | {types[option]} | {_default(kind, parameter)} | {told[option]} |"
        )
    return [*lines, ""]


def _parameters(kind: type) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(kind).parameters)


def _module(kind: type) -> str:
    """As users write it: `kafka`, `messages`, `lookups`."""
    homes = (*PACKAGES, messages, lookups)
    home = next(each for each in homes if getattr(each, kind.__name__, None) is kind)
    return home.__name__.rpartition(".")[2]


def _types(kind: type) -> dict[str, str]:
    """The annotations as they stand in the source, with the names of choices replaced by the choices."""
    owner = kind.__init__  # type: ignore[misc]
    if "__init__" in vars(kind) and dataclasses.is_dataclass(kind) and _is_made(kind):
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(tree, ast.ClassDef)
        noted = [
            (n.target.id, n.annotation)
            for n in tree.body
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        ]
    else:
        function = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(function, ast.FunctionDef)
        noted = [
            (a.arg, a.annotation)
            for a in (*function.args.args, *function.args.kwonlyargs)
            if a.annotation
        ]
    known = vars(sys.modules[owner.__module__ if not _is_made(kind) else kind.__module__])
    return {
        name: " or ".join(f"`{each}`" for each in _alternatives(note, known))
        for name, note in noted
    }


def _is_made(kind: type) -> bool:
    """Whether its `__init__` was made by `dataclass`."""
    return dataclasses.is_dataclass(kind) and kind.__dataclass_params__.init  # type: ignore[attr-defined]


def _alternatives(note: ast.expr, known: dict[str, Any]) -> list[str]:
    if isinstance(note, ast.BinOp) and isinstance(note.op, ast.BitOr):
        return [*_alternatives(note.left, known), *_alternatives(note.right, known)]
    if (
        isinstance(note, ast.Subscript)
        and isinstance(note.value, ast.Name)
        and note.value.id == "Literal"
    ):
        choices = note.slice.elts if isinstance(note.slice, ast.Tuple) else [note.slice]
        return [_quoted(ast.literal_eval(choice)) for choice in choices]
    if isinstance(note, ast.Subscript):
        # A bar inside a type would end the cell of the table.
        inner = re.sub(r"\s*\|\s*", " or ", ast.unparse(note))
        return [inner]
    if isinstance(note, ast.Name):
        alias = known.get(note.id)
        if get_origin(alias) is Literal:
            return [_quoted(choice) for choice in get_args(alias)]
        if isinstance(alias, str):
            home = vars(sys.modules["headrace.connectors.kafka.reading.positions"])
            return _alternatives(ast.parse(alias, mode="eval").body, home)
        if note.id == "Given":
            return ["Mapping[tuple[str, int], int]"]
    return [ast.unparse(note)]


def _default(kind: type, parameter: inspect.Parameter) -> str:
    value = parameter.default
    if value is inspect.Parameter.empty:
        return "required"
    if dataclasses.is_dataclass(kind) and parameter.name in kind.__dataclass_fields__:
        factory = kind.__dataclass_fields__[parameter.name].default_factory
        value = value if factory is dataclasses.MISSING else factory()
    return f"`{_spelled(value)}`"


def _spelled(value: Any) -> str:
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, lookups.Cache):
        return f"Cache(size={value.size:_}, ttl={_spelled(value.ttl)})"
    if callable(value):
        return f"{value.__module__}.{value.__name__}"
    return f"{value:_}" if type(value) is int else repr(value).replace("datetime.", "")


def _duration(length: timedelta) -> str:
    seconds = int(length.total_seconds())
    if seconds and seconds % 60 == 0:
        return f"timedelta(minutes={seconds // 60})"
    return f"timedelta(seconds={seconds})"


def _quoted(text: str) -> str:
    return json.dumps(text)


if __name__ == "__main__":
    on_pre_build()
