"""What is fixed for a sink at its first start, durably beside its spool: lanes, and where their markers are.

A row must belong to the same lane at every attempt at its epoch, and a lane's marker must be where the last run left
it; both would move with the number of partitions of a topic, so those numbers are written down once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from headrace._commit.files import make_directory, read_record, write_record
from headrace.connectors.kafka.writing.partitioner import hashes, partitions
from headrace.errors import CheckpointMismatch

__all__ = ["Assignment", "recorded", "written_down"]

_FILE = "lanes.json"


@dataclass(frozen=True, slots=True)
class Assignment:
    """The numbers of a sink's first start."""

    lanes: int
    #: Partitions of the topic.
    spread: int
    #: Partitions of the control topic; 0: no markers are written.
    markers: int
    #: Its name.
    control: str = ""

    def marker_partition(self, key: bytes) -> int:
        """Where the markers of a lane are."""
        hashed = hashes(pa.array([key], pa.binary()))
        return int(partitions(hashed, max(self.markers, 1))[0])


def recorded(spool: Path, lanes: int | None) -> Assignment | None:
    """What the first start wrote down; `lanes` is what the user asks for today."""
    path = spool / _FILE
    if not path.exists():
        return None
    found = Assignment(**read_record(path))
    if lanes is not None and lanes != found.lanes:
        raise CheckpointMismatch(
            f"lanes={lanes}, but this checkpoint was begun with {found.lanes}, and that cannot change:"
            f" write lanes={found.lanes} or begin with a new checkpoint"
        )
    return found


def written_down(spool: Path, assignment: Assignment) -> Assignment:
    """Make it durable, for good."""
    make_directory(spool)
    write_record(spool / _FILE, asdict(assignment))
    return assignment
