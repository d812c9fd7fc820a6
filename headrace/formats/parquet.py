"""Parquet files. Columns keep their types; a file that is damaged anywhere is refused as a whole."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import BuildError, InputError
from headrace.formats.format import BatchWriter, ByteSink, Decoded, Format

__all__ = ["Parquet"]

_BATCH_ROWS = 65_536
_COMPRESSION = "zstd"


class Parquet(Format):
    """Apache Parquet, compressed with zstd."""

    name = "parquet"
    suffix = ".parquet"
    read_suffixes = (".parquet", ".pq")

    def check_writable(self, schema: pa.Schema) -> None:
        """Try it: only the library knows which types it can store."""
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), schema).close()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise BuildError(f"Parquet cannot hold these columns: {error}") from error

    def writer(self, file: ByteSink, schema: pa.Schema) -> BatchWriter:
        """Begin a file."""
        return _ParquetBatchWriter(file, schema)

    def combine(self, parts: Sequence[Path], file: ByteSink) -> None:
        """Copy the batches of all parts."""
        writer = self.writer(file, pq.read_schema(parts[0]))
        for part in parts:
            with pq.ParquetFile(part) as parquet:
                for batch in parquet.iter_batches(_BATCH_ROWS):
                    writer.write(batch)
        writer.close()

    def read(self, path: Path, schema: pa.Schema) -> Iterator[Decoded]:
        """The declared columns, cast where the file has a type that fits."""
        try:
            yield from _read(path, schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise InputError(f"{path} is not the Parquet file it should be: {error}") from error


class _ParquetBatchWriter(BatchWriter):
    def __init__(self, file: ByteSink, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(file, schema, compression=_COMPRESSION)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(
            batch if batch.schema.equals(self._schema) else batch.cast(self._schema)
        )

    def close(self) -> None:
        self._writer.close()


def _read(path: Path, schema: pa.Schema) -> Iterator[Decoded]:
    with pq.ParquetFile(path) as parquet:
        found = parquet.schema_arrow.names
        missing = [name for name in schema.names if name not in found]
        if missing:
            raise InputError(
                f"{path} has no column {', '.join(missing)}; it has {', '.join(found)}"
            )
        first = 1
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=schema.names):
            rows = batch.select(schema.names).cast(schema)
            yield Decoded(rows, np.arange(first, first + len(rows), dtype=np.int64))
            first += len(rows)
