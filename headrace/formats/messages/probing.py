"""Asks a decoder beforehand whether it can read the declared types, so that a pipeline fails where it is built."""

from collections.abc import Callable

import pyarrow as pa

from headrace.errors import BuildError
from headrace.formats.messages.format import MessageDecoder

__all__ = ["check_readable"]


def check_readable(
    schema: pa.Schema, name: str, decoder: Callable[[pa.Schema], MessageDecoder], nulls: bytes
) -> None:
    """`BuildError` for a column whose type the format `name` cannot read. `nulls` is a message without values."""
    for field in schema:
        try:
            decoder(pa.schema([field]))([nulls])
        except NotImplementedError as error:
            raise BuildError(
                f"column {field.name!r}: format {name!r} cannot read {field.type}; declare another type"
            ) from error
