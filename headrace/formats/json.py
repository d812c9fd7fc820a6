"""JSON lines: one object a line. Fields that the schema does not name are ignored, absent ones are null.

NaN and the infinities have no form in JSON and are written as null.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.formats.format import BatchWriter, ByteSink, Decoded, Format
from headrace.formats.lines import blocks, decode
from headrace.formats.objects import labels, object_decoder, object_texts

__all__ = ["Jsonl"]

#: Joined texts of so many rows stay below the 2 GiB that one Arrow string column can hold.
_WRITE_ROWS = 65_536


class Jsonl(Format):
    """JSON lines in UTF-8."""

    name = "jsonl"
    suffix = ".jsonl"
    read_suffixes = (".jsonl", ".ndjson", ".json")

    def check_writable(self, schema: pa.Schema) -> None:
        """Everything has a form in JSON."""

    def writer(self, file: ByteSink, schema: pa.Schema) -> BatchWriter:
        """Begin a file."""
        return _JsonlWriter(file, schema)

    def combine(self, parts: Sequence[Path], file: ByteSink) -> None:
        """Lines behind lines."""
        for part in parts:
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, file)

    def read(self, path: Path, schema: pa.Schema) -> Iterator[Decoded]:
        """The rows of a file, with the lines that are not rows of this schema set apart."""
        decoder = object_decoder(schema)
        with path.open("rb") as file:
            for block in blocks(file, 1, quoted_newlines=False, is_blank=_is_blank):
                yield decode(block, decoder, schema)


class _JsonlWriter(BatchWriter):
    def __init__(self, file: ByteSink, schema: pa.Schema) -> None:
        self._file = file
        self._labels = labels(schema.names)

    def write(self, batch: pa.RecordBatch) -> None:
        for first in range(0, batch.num_rows, _WRITE_ROWS):
            self._file.write(self._lines(batch.slice(first, _WRITE_ROWS)))

    def close(self) -> None:
        pass

    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        lines = object_texts(batch, self._labels, "}\n")
        _, ends, content = lines.buffers()
        places = np.frombuffer(ends, dtype=np.int32)
        first, last = places[lines.offset], places[lines.offset + len(lines)]
        return memoryview(content)[int(first) : int(last)]


def _is_blank(line: bytes) -> bool:
    return not line.strip()
