"""Durable writes, and JSON records that notice when a byte of them changed.

A write is seen whole or not at all, and stays after a power cut: temporary file, fsync, rename, fsync
of the directory. Nothing here knows what a record means.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.endpoints import Json
from headrace.errors import CheckpointDamaged

__all__ = [
    "crc_of",
    "make_directory",
    "read_record",
    "remove",
    "remove_leftovers",
    "sync_directory",
    "write_durably",
    "write_record",
]

_TEMPORARY = ".tmp"


def write_durably(path: Path, content: bytes) -> None:
    """Replace the file at once; after a return it survives a power cut."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{_TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def write_record(path: Path, body: Mapping[str, Json]) -> None:
    """Write a JSON object with its checksum."""
    text = _canonical(body)
    crc = zlib.crc32(text.encode())
    write_durably(path, f'{{"crc":{crc},"body":{text}}}\n'.encode())


def read_record(path: Path) -> dict[str, Any]:
    """What `write_record` wrote, or `CheckpointDamaged` with the file's name."""
    try:
        document = json.loads(path.read_bytes())
        body = document["body"]
        intact = document["crc"] == zlib.crc32(_canonical(body).encode())
    except FileNotFoundError:
        raise CheckpointDamaged(f"{path} is missing") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointDamaged(f"{path} is not readable: {error}") from error
    if not intact or not isinstance(body, dict):
        raise CheckpointDamaged(f"{path} does not match its checksum")
    return body


def crc_of(path: Path) -> int | None:
    """The checksum of a whole file, or None if there is no such file."""
    try:
        return zlib.crc32(path.read_bytes())
    except FileNotFoundError:
        return None


def make_directory(path: Path) -> None:
    """Make a directory that only we may enter, with its parents, durably."""
    if path.is_dir():
        return
    if not path.parent.is_dir():
        make_directory(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    sync_directory(path.parent)


def remove(path: Path) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def remove_leftovers(directory: Path) -> None:
    """Remove temporary files of writes that a crash cut short."""
    if directory.is_dir():
        for path in directory.glob(f".*{_TEMPORARY}"):
            remove(path)


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _canonical(body: Any) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))
