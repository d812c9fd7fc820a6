"""Holds epochs back and shows several of them as one file.

Held epochs stay staged, so a crash costs nothing: they are not settled and come again. What a merged file
holds is in its name, and an epoch that a merged file holds is never shown twice. Time is looked at only
when an epoch comes.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace._commit.files import remove
from headrace._commit.staged import StagedFile, check_staged
from headrace.connectors.files.layout import SinkLayout
from headrace.connectors.files.publisher import (
    clear_unkept,
    in_order,
    is_waiting,
    remove_empty,
    show,
)
from headrace.endpoints import Publisher, Receipt
from headrace.errors import SinkError
from headrace.formats import Format

__all__ = ["RollingPublisher"]

#: A merged file does not grow much beyond this, whatever the interval says.
_LARGEST_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class _Held:
    epoch: int
    receipts: tuple[Receipt, ...]

    @property
    def size(self) -> int:
        return sum(receipt.size for receipt in self.receipts)


class RollingPublisher(Publisher):
    """Merges the epochs of an interval into one file."""

    def __init__(
        self, layout: SinkLayout, format: Format, interval_s: float, clock: Callable[[], float]
    ) -> None:
        self._layout = layout
        self._format = format
        self._interval_s = interval_s
        self._clock = clock

        self._settled = layout.last_merged()
        self._held: list[_Held] = []
        self._opened_at = 0.0

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Hold the epoch, and show all that is held if it is time."""
        if epoch <= self._last_seen:
            return
        if not receipts and not self._held:
            self._settled = epoch
            return
        self._make_room(receipts)
        if not self._held:
            self._opened_at = self._clock()
        self._held.append(_Held(epoch, tuple(in_order(receipts))))
        if self._is_due():
            self.flush()

    def published(self) -> int | None:
        """The last epoch in a merged file; asked before anything is published."""
        return self._settled

    def settled(self) -> int:
        """The last epoch that is in a merged file, or -1."""
        return -1 if self._settled is None else self._settled

    def flush(self) -> None:
        """Show everything that is held."""
        if not self._held:
            return
        first, last = self._held[0].epoch, self._held[-1].epoch
        receipts = [receipt for held in self._held for receipt in held.receipts]
        try:
            if receipts:
                self._show_as_one(receipts, first, last)
            for held in self._held:
                shutil.rmtree(self._layout.epoch(held.epoch), ignore_errors=True)
        except OSError as error:
            raise SinkError(f"epochs {first} to {last} cannot be shown: {error}") from error
        self._settled = last
        self._held = []

    def highest_seen(self) -> int | None:
        """The last epoch that a published file names."""
        return self._layout.last_seen()

    def discard(self, keep: frozenset[int]) -> None:
        """Remove what was staged for other epochs."""
        clear_unkept(self._layout, keep)

    def close(self) -> None:
        """Leave no empty staging directories."""
        remove_empty(self._layout)

    @property
    def _last_seen(self) -> int:
        return self._held[-1].epoch if self._held else self.settled()

    def _make_room(self, receipts: Sequence[Receipt]) -> None:
        """Rows of another schema, format or directory cannot join the file that is held."""
        kinds = {_kind(receipt) for held in self._held for receipt in held.receipts}
        if kinds and not {_kind(receipt) for receipt in receipts} <= kinds:
            self.flush()

    def _is_due(self) -> bool:
        if self._clock() - self._opened_at >= self._interval_s:
            return True
        return sum(held.size for held in self._held) >= _LARGEST_BYTES

    def _show_as_one(self, receipts: Sequence[Receipt], first: int, last: int) -> None:
        directory, suffix, _ = _kind(receipts[0])
        target = self._layout.merged(Path(directory), first, last, suffix)
        if len(receipts) > 1:
            show([(self._merged(receipts), target)])
        elif is_waiting(receipts[0], target):
            show([(Path(receipts[0].path), target)])

    def _merged(self, receipts: Sequence[Receipt]) -> Path:
        for receipt in receipts:
            check_staged(Path(receipt.path), size=receipt.size, crc=receipt.crc)
        draft = self._layout.staging / "merging"
        remove(draft)
        file = StagedFile(draft)
        self._format.combine([Path(receipt.path) for receipt in receipts], file)
        file.close()
        return draft


def _kind(receipt: Receipt) -> tuple[str, str, str]:
    details = receipt.details
    return str(details["directory"]), str(details["suffix"]), str(details["schema"])
