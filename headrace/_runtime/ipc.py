"""A batch as an Arrow IPC stream, in parcels and in chunks of state.

Compressed, because buckets and flags repeat, counts are small, and every byte crosses sockets or is written to a disk. All on
the calling thread: handing columns to Arrow's pool of threads costs ten times what compressing a small batch does, and gains
nothing on a large one, since every core already runs its own task.
"""

import pyarrow as pa

__all__ = ["from_stream", "to_stream"]

_WRITE = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)


def to_stream(batch: pa.RecordBatch) -> pa.Buffer:
    """The stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_WRITE) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def from_stream(stream: pa.Buffer) -> pa.RecordBatch:
    """The batch of `to_stream`; what is not compressed is not copied."""
    with pa.ipc.open_stream(stream, options=_READ) as reader:
        return reader.read_next_batch()
