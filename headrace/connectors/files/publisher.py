"""Shows staged files: checks each one and renames it into the directory that readers look at.

Every step may be repeated. A staged file that is gone and whose published one is there was renamed
before a crash. A receipt says which directory it was staged for, so rows that are still to be shown when
a user moves a sink elsewhere appear where they were meant to.
"""

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from headrace._commit.files import sync_directory
from headrace._commit.staged import check_staged
from headrace.connectors.files.layout import SinkLayout
from headrace.endpoints import Publisher, Receipt
from headrace.errors import CheckpointDamaged, SinkError

__all__ = ["RenamePublisher", "clear_unkept", "in_order", "is_waiting", "remove_empty", "show"]


class RenamePublisher(Publisher):
    """Each staged file becomes one published file."""

    def __init__(self, layout: SinkLayout) -> None:
        self._layout = layout

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Check all files of the epoch, then rename them one behind the other."""
        moves = [
            (receipt, self._target(epoch, number, receipt))
            for number, receipt in enumerate(in_order(receipts))
        ]
        try:
            show(
                [
                    (Path(staged.path), target)
                    for staged, target in moves
                    if is_waiting(staged, target)
                ]
            )
            shutil.rmtree(self._layout.epoch(epoch), ignore_errors=True)
        except OSError as error:
            raise SinkError(f"epoch {epoch} cannot be shown: {error}") from error

    def highest_seen(self) -> int | None:
        """The last epoch that a published file names."""
        return self._layout.last_seen()

    def discard(self, keep: frozenset[int]) -> None:
        """Remove what was staged for other epochs."""
        clear_unkept(self._layout, keep)

    def close(self) -> None:
        """Leave no empty staging directories."""
        remove_empty(self._layout)

    def _target(self, epoch: int, number: int, receipt: Receipt) -> Path:
        directory, suffix = Path(str(receipt.details["directory"])), str(receipt.details["suffix"])
        return self._layout.published(directory, epoch, number, suffix)


def in_order(receipts: Sequence[Receipt]) -> list[Receipt]:
    """The order in which the files of an epoch are numbered: the same at every attempt."""
    return sorted(receipts, key=lambda receipt: receipt.path)


def is_waiting(receipt: Receipt, target: Path) -> bool:
    """Whether a staged file is whole and still to be shown; False: it is at `target` already."""
    path = Path(receipt.path)
    if path.exists() or not target.exists():
        check_staged(path, size=receipt.size, crc=receipt.crc)
        return True
    _check_published(target, receipt.size)
    return False


def show(moves: Sequence[tuple[Path, Path]]) -> None:
    """Rename, and make the renames durable."""
    for staged, target in moves:
        staged.replace(target)
    for directory in {target.parent for _, target in moves}:
        sync_directory(directory)


def _check_published(path: Path, size: int) -> None:
    found = path.stat().st_size
    if found != size:
        raise CheckpointDamaged(
            f"the published file {path} has {found} bytes; {size} were staged for it. It was cut short or something else"
            " wrote to it, and the staged file is gone: restore it from a copy"
        )


def clear_unkept(layout: SinkLayout, keep: frozenset[int]) -> None:
    """Remove everything staged that does not belong to one of these epochs."""
    names = {str(epoch) for epoch in keep}
    if not layout.staging.is_dir():
        return
    for entry in layout.staging.iterdir():
        if entry.name in names:
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def remove_empty(layout: SinkLayout) -> None:
    """Remove the staging directories that nothing lies in."""
    for directory in (layout.staging, *list(layout.staging.parents)[:2]):
        with contextlib.suppress(OSError):
            directory.rmdir()
