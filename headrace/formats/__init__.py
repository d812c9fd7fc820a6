"""File formats: Arrow batches to bytes and back."""

from headrace.errors import BuildError
from headrace.formats.csv import Csv
from headrace.formats.format import BadRecord, BatchWriter, Decoded, Format
from headrace.formats.json import Jsonl
from headrace.formats.parquet import Parquet

__all__ = ["BadRecord", "BatchWriter", "Decoded", "Format", "format_named"]

_FORMATS: dict[str, Format] = {known.name: known for known in (Parquet(), Jsonl(), Csv())}


def format_named(name: str) -> Format:
    """The format of this name; `BuildError` names the ones there are."""
    found = _FORMATS.get(name)
    if found is None:
        raise BuildError(f"there is no format {name!r}; there are {', '.join(_FORMATS)}")
    return found
