"""How far each sink is: `published.json`.

`shown` is the last epoch handed to a sink's publisher without an error; `settled` is the last one whose
staged data nobody needs any more. They differ while a sink holds rows back to merge them. Recovery
publishes again from `settled`, the planner counts unpublished epochs from `shown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace._commit.files import read_record, write_record
from headrace._commit.paths import Layout
from headrace.endpoints import Json
from headrace.errors import CheckpointDamaged

__all__ = ["Progress", "read_progress", "write_progress"]


@dataclass(frozen=True)
class Progress:
    """What has been recorded of publication. A sink that is absent has shown nothing."""

    shown: Mapping[str, int] = field(default_factory=dict)
    settled: Mapping[str, int] = field(default_factory=dict)
    #: The last epoch that was durable when this was written, and the checksum of its commit.
    durable: int = -1
    commit_crc: int | None = None

    @property
    def lowest_shown(self) -> int:
        """The last epoch that every sink has shown."""
        return min(self.shown.values(), default=self.durable)

    def to_json(self) -> dict[str, Json]:
        return {
            "shown": dict(self.shown),
            "settled": dict(self.settled),
            "durable": self.durable,
            "commit_crc": self.commit_crc,
        }


def read_progress(layout: Layout) -> Progress:
    """What `published.json` says, or the beginning if there is none."""
    if not layout.published.exists():
        return Progress()
    return _parse(read_record(layout.published), layout)


def write_progress(layout: Layout, progress: Progress) -> None:
    """Replace `published.json` durably."""
    write_record(layout.published, progress.to_json())


def _parse(body: Mapping[str, Any], layout: Layout) -> Progress:
    try:
        return Progress(**body)
    except TypeError as error:
        raise CheckpointDamaged(f"{layout.published} is not readable: {error}") from error
