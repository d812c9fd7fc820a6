"""The offset of an epoch: all that a replay needs to be the same epoch again.

It holds the range of every source partition, the watermarks that its rows are judged by, those of the
epoch before, and the clock, which is a watermark too: the entry `CLOCK` of both vectors. It carries a checksum of itself, because Spark does not notice a changed
byte in its offset log. Two equal offsets have equal JSON, key order included: Spark compares text.

It does not say how ranges are read; that is `splits`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace._watermarks.generators import Generated
from headrace.endpoints import Json
from headrace.errors import CheckpointDamaged
from headrace.watermarks import CLOCK, NO_WATERMARK

__all__ = ["INITIAL", "Offset", "Ranges"]

#: source uid -> partition -> (from, to); an empty range tells the position all the same.
Ranges = Mapping[str, Mapping[str, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Offset:
    """One epoch, decided."""

    epoch: int
    ranges: Ranges
    #: By source uid, and `CLOCK`: what this epoch's rows are judged by.
    watermarks: Mapping[str, int]
    #: The vector of the previous epoch: what moves from `before` to `watermarks` fires.
    before: Mapping[str, int]
    clock_us: int
    #: The last epoch of the job: it has no rows, and its watermarks are at the end of time.
    final: bool = False
    #: By source and partition: what the user's generator says in this epoch, and what it remembers then.
    generators: Mapping[str, Mapping[str, Generated]] = field(default_factory=dict)

    @property
    def positions(self) -> int:
        """How many positions the epoch covers, over all sources."""
        return sum(to - start for parts in self.ranges.values() for start, to in parts.values())

    @property
    def clock_before_us(self) -> int:
        """The clock of the epoch before; `NO_WATERMARK` in the birth epoch."""
        before = self.before.get(CLOCK, NO_WATERMARK)
        return before if before == NO_WATERMARK else before + 1

    def position(self, source: str, partition: str) -> int | None:
        """Where the next epoch begins to read, or None if the partition is not known yet."""
        found = self.ranges.get(source, {}).get(partition)
        return None if found is None else found[1]

    def to_json(self) -> dict[str, Json]:
        """Plain JSON with sorted keys and a checksum."""
        body = _body(self)
        return {**body, "crc": _crc(body)}

    @staticmethod
    def from_json(document: Mapping[str, Any], *, where: str = "the offset") -> Offset:
        """The offset again, or `CheckpointDamaged` if it is not as it was written."""
        body = {name: value for name, value in document.items() if name != "crc"}
        try:
            if document.get("crc") != _crc(body):
                raise CheckpointDamaged(f"{where} does not match its checksum")
            return _parse(body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointDamaged(f"{where} is not an offset of Headrace ({error!r})") from error


#: Before the first epoch. Spark does not log it, so it must be a constant.
INITIAL = Offset(-1, {}, {}, {}, 0)


def _body(offset: Offset) -> dict[str, Json]:
    return {
        "before": dict(sorted(offset.before.items())),
        "clock_us": offset.clock_us,
        "epoch": offset.epoch,
        "final": offset.final,
        "generators": {
            source: {name: [said.promised_us, said.state] for name, said in sorted(parts.items())}
            for source, parts in sorted(offset.generators.items())
        },
        "ranges": {
            source: {name: [start, to] for name, (start, to) in sorted(parts.items())}
            for source, parts in sorted(offset.ranges.items())
        },
        "watermarks": dict(sorted(offset.watermarks.items())),
    }


def _parse(body: Mapping[str, Any]) -> Offset:
    return Offset(
        epoch=int(body["epoch"]),
        ranges={
            source: {name: (int(start), int(to)) for name, (start, to) in parts.items()}
            for source, parts in body["ranges"].items()
        },
        watermarks={source: int(value) for source, value in body["watermarks"].items()},
        before={source: int(value) for source, value in body["before"].items()},
        clock_us=int(body["clock_us"]),
        final=bool(body["final"]),
        generators={
            source: {name: Generated(*said) for name, said in parts.items()}
            for source, parts in body["generators"].items()
        },
    )


def _crc(body: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
