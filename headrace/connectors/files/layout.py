"""The names of a file sink: where rows are staged and what published files are called.

    out/.staging/<incarnation>/<uid>/<epoch>/<task>            staged: no reader's glob finds it
    out/<incarnation>-<uid>-<epoch>-<number>.parquet           published
    out/<incarnation>-<uid>-<epoch>-to-<epoch>.parquet         published, several epochs in one

A name holds the incarnation of the checkpoint and the sink's uid, so two jobs, two sinks, or a job that
begins anew never write the same file. Names only: nothing here changes the disk.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from headrace._commit.paths import safe_name
from headrace.endpoints import SinkContext

__all__ = ["SinkLayout", "layout_of"]

_SHOWN_LETTERS = 8
# What follows the prefix in a published name; the group is the last epoch in the file.
_SINGLE = r"(\d{12,})-\d+"
_MERGED = r"\d{12,}-to-(\d{12,})"


@dataclass(frozen=True, slots=True)
class SinkLayout:
    """The paths of one sink of one job in one directory."""

    directory: Path
    incarnation: str
    sink: str

    @property
    def staging(self) -> Path:
        """Where everything of this sink is staged."""
        return self.directory / ".staging" / self.incarnation / self.sink

    def epoch(self, epoch: int) -> Path:
        """Where the rows of an epoch are staged."""
        return self.staging / str(epoch)

    def published(self, directory: Path, epoch: int, number: int, suffix: str) -> Path:
        """The place of one file of an epoch."""
        return directory / f"{self._prefix}-{epoch:012d}-{number}{suffix}"

    def merged(self, directory: Path, first: int, last: int, suffix: str) -> Path:
        """The place of one file with all rows of several epochs."""
        return directory / f"{self._prefix}-{first:012d}-to-{last:012d}{suffix}"

    def last_merged(self) -> int | None:
        """The last epoch that a merged file in the directory holds."""
        return self._last(_MERGED)

    def last_seen(self) -> int | None:
        """The last epoch that any published file in the directory holds rows of."""
        return self._last(_MERGED, _SINGLE)

    @property
    def _prefix(self) -> str:
        return f"{self.incarnation[:_SHOWN_LETTERS]}-{self.sink}"

    def _last(self, *kinds: str) -> int | None:
        names = [path.name for path in self.directory.glob("*")]
        patterns = [re.compile(rf"{re.escape(self._prefix)}-{kind}\.\w+") for kind in kinds]
        matches = (pattern.fullmatch(name) for pattern in patterns for name in names)
        return max((int(match[1]) for match in matches if match), default=None)


def layout_of(directory: Path, context: SinkContext) -> SinkLayout:
    """The layout of the sink that a context describes."""
    return SinkLayout(directory, context.incarnation, safe_name(context.uid))
