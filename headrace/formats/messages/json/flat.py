"""Objects of plain values, each message parsed alone into an object of its declared fields.

Most streams are like that, and it takes half the time of Arrow's reader, which wants all messages in one text and makes a
column of everything. Only what is certain is decided here: a batch in which something does not fit is left to those who
find out what it is. So whatever is taken here must be what they would take, with the same values.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.types as pt

from headrace.formats.objects import declared, wire_type

__all__ = ["FlatDecoder", "flat_decoder"]

#: The rows of all messages, or None if one of them may be bad.
FlatDecoder: TypeAlias = Callable[[Sequence[bytes | None]], pa.RecordBatch | None]


def flat_decoder(schema: pa.Schema) -> FlatDecoder | None:
    """A decoder for columns of these types, or None if one of them is not for it."""
    wire = [wire_type(field.type) for field in schema]
    kinds = [_python_type(kind) for kind in wire]
    if None in kinds or not all(_is_plain(field.type) for field in schema):
        return None
    # Names of fields may be anything, names of attributes may not.
    names = [f"f{place}" for place in range(len(schema))]
    row = msgspec.defstruct(
        "Row",
        [(name, kind | None, None) for name, kind in zip(names, kinds, strict=True)],  # type: ignore[operator]
        rename=dict(zip(names, schema.names, strict=True)),
        gc=False,
    )
    parse = msgspec.json.Decoder(row).decode
    columns = list(zip(map(attrgetter, names), wire, schema.types, strict=True))

    def decode(values: Sequence[bytes | None]) -> pa.RecordBatch | None:
        try:
            rows = list(map(parse, values))
            found = [
                declared(pa.array(list(map(get, rows)), kind), type_)
                for get, kind, type_ in columns
            ]
        # A tombstone is a TypeError, a text that is not UTF-8 or a number that is too large a ValueError or an OverflowError.
        except (ValueError, TypeError, OverflowError, RecursionError):
            return None
        return pa.record_batch(found, schema=schema)

    return decode


def _is_plain(kind: pa.DataType) -> bool:
    """Whether the declared type is one of those that `declared` makes a whole column of at once."""
    return bool(pt.is_timestamp(kind) or pt.is_date(kind) or kind.equals(wire_type(kind)))


def _python_type(kind: pa.DataType) -> type | None:
    """What Python has for it without a loss; a fraction of 32 bits would be rounded twice."""
    if pt.is_boolean(kind):
        return bool
    if pt.is_integer(kind):
        return int
    if pt.is_string(kind) or pt.is_large_string(kind):
        return str
    return float if pt.is_float64(kind) else None
