"""The committer: records manifests in the job's thread and publishes durable epochs in one of its own.

Epochs are published in order, each once Spark's commit of it exists, while the next ones run. A system
outside that is away is asked again and again with growing pauses: the backlog grows until the planner
stops taking input in; nothing is lost. Any other error ends publication and shows at the next `record`.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping

from headrace._commit.checkpoint import Checkpoint
from headrace._commit.faults import Faults
from headrace._commit.lease import Lease
from headrace._commit.manifest import Manifest, write_manifest
from headrace._commit.publication import Publication
from headrace.endpoints import Publisher
from headrace.errors import EngineError, HeadraceError, SinkError

__all__ = ["Committer"]

#: How often commits/N is looked for while an epoch waits for it.
_POLL_S = 0.02
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class Committer:
    """Takes epochs in as they are recorded and shows them when they are durable. One per run."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        publishers: Mapping[str, Publisher],
        *,
        faults: Faults | None = None,
        lease: Lease | None = None,
    ) -> None:
        self._checkpoint = checkpoint
        self._publishers = publishers
        self._faults = faults or Faults()
        held = (lambda: True) if lease is None else lease.held
        self._publication = Publication(checkpoint, publishers, faults=self._faults, held=held)
        self._changed = threading.Condition()
        self._waiting: OrderedDict[int, Manifest] = OrderedDict()
        self._published = self._publication.progress.lowest_shown
        self._stopping = False
        self._error: HeadraceError | None = None
        self._problem: SinkError | None = None
        self._thread = threading.Thread(target=self._run, name="headrace-committer", daemon=True)
        self._thread.start()

    @property
    def error(self) -> HeadraceError | None:
        """What ended publication, if anything did."""
        return self._error

    @property
    def problem(self) -> SinkError | None:
        """Why publication waits at the moment, if a system outside is away."""
        return self._problem

    @property
    def published(self) -> int:
        """The last epoch that every sink shows; -1 if there is none."""
        return self._published

    def record(self, manifest: Manifest) -> None:
        """Write the manifest durably; from now on the epoch waits to become durable itself."""
        if self._error is not None:
            raise self._error
        self._faults.reach("K5", manifest.epoch)
        write_manifest(self._checkpoint.layout, manifest)
        with self._changed:
            self._waiting[manifest.epoch] = manifest
            self._changed.notify_all()
        self._faults.reach("K6", manifest.epoch)

    def backlog(self) -> int:
        """How many recorded epochs are not published yet."""
        with self._changed:
            return len(self._waiting)

    def wait_published(self, epoch: int, timeout: float | None = None) -> bool:
        """Wait until the epoch is shown by every sink. False: not in time. Raises what ended publication."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._published >= epoch or self._error is not None, timeout
            )
            if self._published < epoch and self._error is not None:
                raise self._error
            return self._published >= epoch

    def close(self, *, flush: bool = False) -> None:
        """End publication behind the epoch at hand.

        `flush` is for a run that ends well: sinks show what they held back, and staged data that no
        later run will ask for goes.
        """
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()
        try:
            if flush and self._error is None:
                self._publication.flush()
                self._publication.tidy()
        finally:
            for publisher in self._publishers.values():
                publisher.close()

    def _run(self) -> None:
        try:
            while (manifest := self._next()) is not None:
                if self._publish(manifest):
                    self._done(manifest)
        except HeadraceError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - a thread must not die in silence
            failure = EngineError(f"publishing failed: {error!r}")
            failure.__cause__ = error
            self._fail(failure)

    def _next(self) -> Manifest | None:
        """The next epoch, once it is durable; None at the end."""
        with self._changed:
            while not self._stopping:
                manifest = next(iter(self._waiting.values()), None)
                if manifest is not None and self._is_durable(manifest.epoch):
                    return manifest
                self._changed.wait(None if manifest is None else _POLL_S)
        return None

    def _is_durable(self, epoch: int) -> bool:
        # Spark runs N+1 only behind commits/N, and may have purged commits/N when we are slow.
        later = next(reversed(self._waiting)) > epoch
        return later or self._checkpoint.layout.commit(epoch).exists()

    def _publish(self, manifest: Manifest) -> bool:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                self._publication.publish(manifest)
            except SinkError as error:
                if not error.retryable:
                    raise
                self._problem = error
            else:
                self._problem = None
                return True
            if self._pause(pause_s):
                return False
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _pause(self, seconds: float) -> bool:
        """Wait; True if the end came meanwhile."""
        until = time.monotonic() + seconds
        with self._changed:
            while not self._stopping and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._stopping

    def _done(self, manifest: Manifest) -> None:
        with self._changed:
            del self._waiting[manifest.epoch]
            self._published = manifest.epoch
            self._changed.notify_all()

    def _fail(self, error: HeadraceError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()
