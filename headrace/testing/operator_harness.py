"""`OperatorHarness`: one window, join or process function, tested by hand without a pipeline or Spark.

Each call is its own epoch, so a row meets the state that all earlier calls left, as in Flink's harness of that name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any

from headrace._graph.nodes import MAIN
from headrace.errors import BuildError
from headrace.outputs import OutputTag
from headrace.stream import Stream
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["OperatorHarness"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OperatorHarness:
    """Give rows, watermarks and the time of the clock to one keyed step, and take what it emits.

        detector = OperatorHarness(payments.key_by("account").process(FraudDetector(), uid="detector"))
        detector.row({"account": 7, "amount": 0.5}, at=noon)
        detector.row({"account": 7, "amount": 900.0}, at=noon + timedelta(seconds=30))
        assert detector.take() == [{"account": 7, "amount": 900.0}]

    `step` is the stream that the step returned; its sources are never read. The clock begins at 1970. State is kept as in
    a job: `restore` drops what is in memory and reads it back, on another number of shards if asked.
    """

    def __init__(self, step: Stream, *, shards: int = 1) -> None:
        self._steps = StepHarness(step, shards)
        self._emitted: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._watermark = NO_WATERMARK
        self._clock = 0

    def row(self, fields: object, at: datetime, *, input: int = 0) -> None:
        """One row (a dict or a dataclass instance) with its timestamp; `input` 1 is the second input of a join.

        Columns that the row does not have are null.
        """
        named = asdict(fields) if is_dataclass(fields) and not isinstance(fields, type) else fields
        if not isinstance(named, Mapping):
            raise BuildError(f"a row is a dict or an instance of a dataclass, not {fields!r}")
        self._check_row(named, input)
        self._epoch([SidedRow(_micros(at), named, input)], self._watermark, self._clock)

    def watermark(self, to: datetime) -> None:
        """No row with a timestamp up to `to` can come any more: timers and windows up to it fire."""
        self._epoch([], max(self._watermark, _micros(to)), self._clock)

    def clock(self, to: datetime) -> None:
        """Processing time is `to`; its timers fire."""
        self._epoch([], self._watermark, max(self._clock, _micros(to)))

    def end(self) -> None:
        """The input has ended: everything in event time fires."""
        self._epoch([], END_OF_TIME, self._clock)

    def take(self, output: str | OutputTag = MAIN) -> list[dict[str, Any]]:
        """The rows emitted since the last call: results, or those of "late", "errors" or a side output."""
        name = output.name if isinstance(output, OutputTag) else output
        known = self._steps.outputs
        if name not in known:
            raise BuildError(f"the step has no output {name!r}; it has {', '.join(known)}")
        return self._emitted.pop(name, [])

    def restore(self, shards: int | None = None) -> None:
        """What a restart does: only the state of the last epoch is left, on `shards` shards."""
        self._steps.restore(shards)

    def _check_row(self, fields: Mapping[str, Any], number: int) -> None:
        schemas = self._steps.schemas
        if not 0 <= number < len(schemas):
            known = " and ".join(map(str, range(len(schemas))))
            raise BuildError(f"the step has no input {number!r}; it has {known}")
        columns = schemas[number].names
        if unknown := [str(name) for name in fields if name not in columns]:
            raise BuildError(
                f"input {number} has no column {', '.join(unknown)}; its columns are {', '.join(columns)}"
            )

    def _epoch(self, rows: list[SidedRow], watermark: int, clock: int) -> None:
        epoch = StepEpoch(self._watermark, watermark, rows, (), self._clock, clock)
        for output, emitted in self._steps.epoch(epoch).items():
            self._emitted[output] += emitted
        self._watermark, self._clock = watermark, clock


def _micros(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise BuildError(f"{moment!r} has no time zone: give it one, such as datetime.UTC")
    return (moment - _EPOCH) // (_EPOCH.resolution)
