"""Dead letters as `stream.errors.sink_to(...)` left them: in a directory of files or in a Kafka topic, as JSON.

They are numbered from the oldest, so a number keeps its meaning while more arrive. Nothing here changes anything.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer

from headrace._graph.nodes import ERRORS_SCHEMA
from headrace.errors import BuildError, InputError, SinkError
from headrace.formats import Format, format_named

__all__ = ["Letter", "TopicAddress", "address_of", "letters_at", "parsed_options"]

_FORMATS = ("parquet", "jsonl", "csv")
_BYTES = ("raw", "raw_key")
#: A Kafka partition as sources call it; paths of files have letters that topics may not have.
_PARTITION = re.compile(r"([A-Za-z0-9._-]+)-(\d+)")
_PATIENCE_S = 30.0
_WHERE = "Dead letters lie where stream.errors.sink_to(...) put them."


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter, where it lies and since when."""

    uid: str | None
    cause: str | None
    traceback: str | None
    source: str | None
    partition: str | None
    offset: int | None
    payload: str | None
    raw: bytes | None
    raw_key: bytes | None
    place: str
    at: datetime
    number: int = 0
    #: The same for the same record, whichever jobs and steps wrote letters about it.
    identity: str = ""

    @property
    def origin(self) -> tuple[str, int] | None:
        """The topic and partition that it came from, if it came from Kafka."""
        match = _PARTITION.fullmatch(self.partition or "")
        return None if match is None else (match[1], int(match[2]))

    @property
    def is_record(self) -> bool:
        """The record is there as it came: its bytes, or nothing for a tombstone. Others hold a row as JSON."""
        return self.raw is not None or not self.payload

    @property
    def value(self) -> bytes | None:
        """The record, or the row as JSON."""
        if self.raw is not None or not self.payload:
            return self.raw
        return self.payload.encode()


@dataclass(frozen=True, slots=True)
class TopicAddress:
    """A topic of a cluster: `kafka://host:9092,other:9092/topic`."""

    bootstrap: str
    topic: str


def address_of(place: str) -> Path | TopicAddress:
    """What the user named: a directory (or file), or a topic."""
    if "://" not in place:
        return Path(place).expanduser()
    parts = urlsplit(place)
    topic = parts.path.strip("/")
    if parts.scheme != "kafka" or not parts.netloc or not topic or "/" in topic:
        raise BuildError(
            f"{place!r} is neither a directory nor a topic; a topic is kafka://host:9092/topic"
        )
    return TopicAddress(parts.netloc, topic)


def parsed_options(options: Sequence[str] | None) -> dict[str, str]:
    """`name=value` as a mapping."""
    pairs = [option.partition("=") for option in options or ()]
    wrong = [name for name, sign, _ in pairs if not sign]
    if wrong:
        raise BuildError(f"--option is name=value, unlike {wrong[0]!r}")
    return {name: value for name, _, value in pairs}


def letters_at(place: str, options: Mapping[str, str]) -> list[Letter]:
    """All letters, oldest first, numbered from 1. `options` are for a Kafka client."""
    address = address_of(place)
    if isinstance(address, Path):
        found = list(_in_files(address))
    else:
        found = list(_in_topic(address, options))
    found.sort(key=lambda letter: letter.at)  # stable: within a file or partition they are in order
    return _numbered(found)


def _numbered(letters: Sequence[Letter]) -> list[Letter]:
    seen: Counter[str] = Counter()
    numbered = []
    for number, letter in enumerate(letters, 1):
        digest = _digest(letter)
        if not (letter.is_record and letter.offset is not None):
            # Rows of one record can be equal and are still several; they are as good as each other.
            digest = f"{digest}-{seen[digest]}"
        seen[_digest(letter)] += 1
        numbered.append(replace(letter, number=number, identity=digest))
    return numbered


def _digest(letter: Letter) -> str:
    parts = (letter.partition, letter.offset, letter.value, letter.raw_key)
    own = () if letter.is_record else (letter.uid,)
    return hashlib.sha256(repr((parts, own)).encode()).hexdigest()[:32]


def _in_files(path: Path) -> Iterator[Letter]:
    if not path.exists():
        raise BuildError(f"there is no {path}. {_WHERE}")
    paths = [path] if path.is_file() else sorted(_visible(path))
    if not paths and any(not found.name.startswith(".") for found in path.iterdir()):
        raise BuildError(f"{path} has no files that end with .parquet, .jsonl or .csv")
    for file in paths:
        form = _format_of(file)
        if form is None:
            raise BuildError(f"{file} does not end with .parquet, .jsonl or .csv")
        yield from _in_file(file, form)


def _visible(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        if path.is_file() and not path.name.startswith(".") and _format_of(path) is not None:
            yield path


def _format_of(path: Path) -> Format | None:
    forms = map(format_named, _FORMATS)
    return next((form for form in forms if path.suffix in form.read_suffixes), None)


def _in_file(path: Path, form: Format) -> Iterator[Letter]:
    at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    for decoded in form.read(path, ERRORS_SCHEMA):
        if decoded.bad:
            first = decoded.bad[0]
            raise InputError(
                f"{path}, line {first.line} is not a dead letter: {first.cause}. {_WHERE}"
            )
        rows = zip(decoded.batch.to_pylist(), decoded.lines.tolist(), strict=True)
        for row, line in rows:
            if row["cause"] is None:
                raise InputError(
                    f"{path}, row {line} is not a dead letter: it has no cause. {_WHERE}"
                )
            yield Letter(**row, place=f"{path}, row {line}", at=at)


def _in_topic(address: TopicAddress, options: Mapping[str, str]) -> Iterator[Letter]:
    from headrace.connectors.kafka.clients import client_config, library, opened, sentence

    config = client_config(address.bootstrap, options)
    config |= {
        "group.id": "headrace-dlq",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",  # the oldest may be deleted, and then there is no offset 0
    }
    consumer = opened("Consumer", config | {"isolation.level": "read_committed"})
    try:
        held = [found for found in _records(consumer, address) if found.value() is not None]
        # Partitions come in any order, and a letter must keep its number from one command to the next.
        held.sort(key=lambda found: (found.partition(), found.offset()))
        yield from _only_letters(held)
    except library().KafkaException as error:
        raise SinkError(f"{address.bootstrap} cannot be read: {sentence(error)}") from error
    finally:
        consumer.close()


def _only_letters(records: Sequence[Any]) -> Iterator[Letter]:
    """What else somebody wrote to the topic cannot be taken out of it, so it must not stand in the way."""
    wrong: list[InputError] = []
    for record in records:
        try:
            yield _letter(record)
        except InputError as error:
            wrong.append(error)
    if wrong and len(wrong) == len(records):
        raise wrong[0]
    if wrong:
        typer.echo(f"{len(wrong)} records are left out; the first: {wrong[0]}", err=True)


def _records(consumer: Any, address: TopicAddress) -> Iterator[Any]:
    """Every record up to the end that each partition has now; the library says when it is there."""
    from confluent_kafka import KafkaError, KafkaException, TopicPartition

    known = consumer.list_topics(address.topic, timeout=_PATIENCE_S).topics[address.topic]
    if known.error is not None:
        raise BuildError(f"{address.bootstrap} has no topic {address.topic!r}: {known.error.str()}")
    open_ones = set(known.partitions)
    consumer.assign([TopicPartition(address.topic, number, 0) for number in open_ones])
    while open_ones:
        record = consumer.poll(_PATIENCE_S)
        if record is None:
            raise SinkError(f"{address.bootstrap} sent nothing for {_PATIENCE_S:.0f} s; is it up?")
        error = record.error()
        if error is None:
            if record.partition() in open_ones:
                yield record
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is how it is called
            open_ones.discard(record.partition())
        else:
            raise KafkaException(error)


def _letter(record: Any) -> Letter:
    place = f"{record.topic()}-{record.partition()}, offset {record.offset()}"
    try:
        row = json.loads(record.value())
        fields = {name: row.get(name) for name in ERRORS_SCHEMA.names}
        for name in _BYTES:
            if fields[name] is not None:
                fields[name] = base64.b64decode(fields[name], validate=True)
        if fields["cause"] is None:
            raise ValueError("it has no cause")
    except (ValueError, AttributeError, TypeError, binascii.Error) as error:
        raise InputError(
            f"{place} is not a dead letter: {error}. They are written by stream.errors.sink_to("
            'KafkaSink(..., format="json"))'
        ) from error
    at = datetime.fromtimestamp(record.timestamp()[1] / 1000, UTC)
    return Letter(**fields, place=place, at=at)
