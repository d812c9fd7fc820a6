"""Publishing one durable epoch: every sink in turn, then the note that it is done.

Both recovery and the committer's thread publish through here, so a crash has the same table in both. A
publication that failed half-way can be called again: sinks that are done are not asked twice in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from headrace._commit.checkpoint import Checkpoint, durable_epoch
from headrace._commit.faults import Faults
from headrace._commit.files import crc_of, remove
from headrace._commit.manifest import Manifest
from headrace._commit.protocol import oldest_kept, retire
from headrace._commit.published import Progress, write_progress
from headrace.endpoints import Publisher
from headrace.errors import EngineError

__all__ = ["Publication"]

#: How often old manifests are looked for, in epochs: listing a directory for each would be waste.
_RETIRE_EVERY = 8


class Publication:
    """The one writer of `published.json`."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        publishers: Mapping[str, Publisher],
        *,
        faults: Faults,
        held: Callable[[], bool] = lambda: True,
        recovering: bool = False,
    ) -> None:
        self._checkpoint = checkpoint
        self._publishers = dict(publishers)
        self._faults = faults
        self._held = held
        progress = checkpoint.progress()
        self._settled = {sink: progress.settled.get(sink, -1) for sink in self._publishers}
        # Publishers are new when a run begins: what they held back in an earlier one they get again.
        shown = progress.settled if recovering else progress.shown
        self._shown = {sink: shown.get(sink, -1) for sink in self._publishers}
        self._durable = progress.durable
        #: No older epoch has a manifest.
        self._oldest = 0

    @property
    def progress(self) -> Progress:
        """What is true now, written or not."""
        return Progress(dict(self._shown), dict(self._settled), self._durable)

    def publish(self, manifest: Manifest, sinks: Iterable[str] | None = None) -> None:
        """Show a durable epoch in these sinks (all of them) and note it. May be repeated after an error."""
        epoch = manifest.epoch
        before = dict(self._shown)
        self._faults.reach("K8", epoch)
        try:
            self._show_all(manifest, self._publishers if sinks is None else sinks)
        except Exception:
            # Readers may take away what one sink shows while another is away: it must not be due again.
            if self._shown != before and self._held():
                self.note(epoch)
            raise
        self._faults.reach("K11", epoch)
        self.note(epoch)

    def record_shown(self, sink: str, epoch: int) -> None:
        """The system outside shows this epoch already; `note` writes it down."""
        self._shown[sink] = max(self._shown[sink], epoch)
        self._settled[sink] = max(self._settled[sink], epoch)

    def flush(self) -> None:
        """Let every sink show what it held back, and note it."""
        for publisher in self._publishers.values():
            self._check_lease()
            publisher.flush()
        if self._durable >= 0:
            self.note(self._durable)

    def tidy(self) -> None:
        """Remove staged data that nobody will ask for: of failed attempts, and of settled epochs."""
        # An epoch that has a manifest may become durable at any moment, published by this run or not.
        checkpoint = self._checkpoint
        newest = max((durable_epoch(checkpoint.layout), *checkpoint.manifests()))
        for sink, publisher in self._publishers.items():
            publisher.discard(frozenset(range(self._settled[sink] + 1, newest + 1)))

    def note(self, epoch: int) -> None:
        """Write down how far every sink is, now that `epoch` is durable."""
        self._durable = max(self._durable, epoch)
        for sink, publisher in self._publishers.items():
            settled = publisher.settled()
            shown = self._shown[sink]
            self._settled[sink] = max(
                self._settled[sink], shown if settled is None else min(settled, shown)
            )
        layout = self._checkpoint.layout
        crc = crc_of(layout.commit(self._durable))
        write_progress(layout, Progress(dict(self._shown), dict(self._settled), self._durable, crc))
        if epoch % _RETIRE_EVERY == 0:
            self._retire()

    def _show_all(self, manifest: Manifest, sinks: Iterable[str]) -> None:
        for number, sink in enumerate(sinks):
            if self._shown[sink] >= manifest.epoch:
                continue
            self._show(manifest, sink)
            if number == 0 and len(self._publishers) > 1:
                self._faults.reach("K9", manifest.epoch)

    def _show(self, manifest: Manifest, sink: str) -> None:
        self._check_lease()
        self._publishers[sink].publish(manifest.epoch, manifest.receipts_of(sink))
        self._faults.reach("K10", manifest.epoch)
        self._shown[sink] = manifest.epoch

    def _check_lease(self) -> None:
        if not self._held():
            # Most often its JVM died. If another run has it, the next attempt to take it says so.
            raise EngineError(
                f"the lease of {self._checkpoint.layout.root} was lost; this run publishes nothing more"
            )

    def _retire(self) -> None:
        settled = min(self._settled.values(), default=self._durable)
        oldest = oldest_kept(durable=self._durable, settled=settled)
        if oldest <= self._oldest:
            return
        for stale in retire(self._checkpoint.manifests(), oldest):
            remove(self._checkpoint.layout.manifest(stale.epoch, stale.fence))
        self._oldest = oldest
