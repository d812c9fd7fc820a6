import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headrace._commit import publisher as module
from headrace._commit.checkpoint import Checkpoint
from headrace._commit.faults import Faults
from headrace._commit.files import write_durably
from headrace._commit.manifest import Manifest, write_manifest
from headrace._commit.publication import Publication
from headrace._commit.publisher import Committer
from headrace._commit.recovery import recover
from headrace.endpoints import Publisher, Receipt
from headrace.errors import EngineError, SinkError, SinkRefused

WAIT_S = 20.0


class Journal(Publisher):
    """Writes down what it is asked; `fail` may raise."""

    def __init__(
        self, log: list[str], name: str, fail: Callable[[int], None] | None = None
    ) -> None:
        self.log, self.name, self.fail = log, name, fail
        self.held_back: int | None = None

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        if self.fail is not None:
            self.fail(epoch)
        self.log.append(f"{self.name}{epoch}")

    def settled(self) -> int | None:
        return self.held_back

    def flush(self) -> None:
        self.log.append(f"{self.name} flushed")
        self.held_back = None

    def close(self) -> None:
        self.log.append(f"{self.name} closed")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    checkpoint = Checkpoint.open(
        tmp_path / "c", job="j", signature={}, digest="d", shards=1, default_shards=1, versions={}
    )
    checkpoint.layout.commits.mkdir(parents=True)
    return checkpoint


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", 0.001)
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.001)


def manifest(checkpoint: Checkpoint, epoch: int) -> Manifest:
    return Manifest(epoch=epoch, fence=checkpoint.fence, incarnation=checkpoint.incarnation)


def commit(checkpoint: Checkpoint, epoch: int) -> None:
    """As Spark does it: the file is there whole or not at all."""
    write_durably(checkpoint.layout.commit(epoch), b"v1")


def test_epochs_are_published_in_order_once_they_are_durable(checkpoint: Checkpoint) -> None:
    log: list[str] = []
    committer = Committer(checkpoint, {"a": Journal(log, "a"), "b": Journal(log, "b")})
    for epoch in range(3):
        committer.record(manifest(checkpoint, epoch))
        commit(checkpoint, epoch)
    assert committer.wait_published(2, WAIT_S)
    committer.close()
    assert log == ["a0", "b0", "a1", "b1", "a2", "b2", "a closed", "b closed"]
    assert checkpoint.progress().shown == {"a": 2, "b": 2}
    assert checkpoint.progress().durable == 2


def test_nothing_is_published_before_its_commit(checkpoint: Checkpoint) -> None:
    log: list[str] = []
    committer = Committer(checkpoint, {"a": Journal(log, "a")})
    committer.record(manifest(checkpoint, 0))
    assert not committer.wait_published(0, 0.05)
    assert (log, committer.backlog()) == ([], 1)
    commit(checkpoint, 0)
    assert committer.wait_published(0, WAIT_S)
    assert committer.backlog() == 0
    committer.close()


def test_a_purged_commit_is_durable_when_a_later_epoch_is_recorded(checkpoint: Checkpoint) -> None:
    committer = Committer(checkpoint, {"a": Journal([], "a")})
    committer.record(manifest(checkpoint, 0))
    committer.record(manifest(checkpoint, 1))
    assert committer.wait_published(0, WAIT_S)
    committer.close()


def test_a_sink_that_is_away_is_asked_again_and_others_are_not(checkpoint: Checkpoint) -> None:
    log: list[str] = []
    failures = iter([SinkError("away"), SinkError("away")])

    def fail(epoch: int) -> None:
        error = next(failures, None)
        if error is not None:
            raise error

    committer = Committer(checkpoint, {"a": Journal(log, "a"), "b": Journal(log, "b", fail)})
    committer.record(manifest(checkpoint, 0))
    commit(checkpoint, 0)
    assert committer.wait_published(0, WAIT_S)
    assert log == ["a0", "b0"]
    assert (committer.problem, committer.error) == (None, None)
    committer.close()


def test_closing_while_a_sink_is_away_ends_without_publishing(checkpoint: Checkpoint) -> None:
    tried = threading.Event()

    def fail(epoch: int) -> None:
        tried.set()
        raise SinkError("away")

    log: list[str] = []
    committer = Committer(checkpoint, {"a": Journal(log, "a", fail)})
    committer.record(manifest(checkpoint, 0))
    commit(checkpoint, 0)
    assert tried.wait(WAIT_S)
    committer.close()
    assert log == ["a closed"]
    assert checkpoint.progress().shown == {}


def test_any_other_error_ends_publication_and_shows_at_the_next_epoch(
    checkpoint: Checkpoint,
) -> None:
    def fail(epoch: int) -> None:
        raise ZeroDivisionError("bug")

    committer = Committer(checkpoint, {"a": Journal([], "a", fail)})
    committer.record(manifest(checkpoint, 0))
    commit(checkpoint, 0)
    with pytest.raises(EngineError, match="bug"):
        committer.wait_published(0, WAIT_S)
    with pytest.raises(EngineError, match="bug"):
        committer.record(manifest(checkpoint, 1))
    assert checkpoint.manifest(1) is None
    committer.close()


def test_without_the_lease_nothing_is_published(checkpoint: Checkpoint) -> None:
    class Lost:
        def acquire(self, path: Path) -> None: ...
        def release(self) -> None: ...
        def held(self) -> bool:
            return False

    log: list[str] = []
    committer = Committer(checkpoint, {"a": Journal(log, "a")}, lease=Lost())
    committer.record(manifest(checkpoint, 0))
    commit(checkpoint, 0)
    # Retryable: the next attempt learns whether another run has the lease or the JVM died.
    with pytest.raises(EngineError, match=r"the lease of .* was lost"):
        committer.wait_published(0, WAIT_S)
    committer.close()
    assert log == ["a closed"]


def test_rows_held_back_are_shown_again_by_the_next_run(checkpoint: Checkpoint) -> None:
    log: list[str] = []
    sink = Journal(log, "a")
    sink.held_back = 0
    first = Committer(checkpoint, {"a": sink})
    for epoch in range(3):
        first.record(manifest(checkpoint, epoch))
        commit(checkpoint, epoch)
    assert first.wait_published(2, WAIT_S)
    first.close()
    assert checkpoint.progress().settled == {"a": 0}
    assert checkpoint.progress().shown == {"a": 2}
    log.clear()
    checkpoint.layout.offsets.mkdir()
    for epoch in (1, 2):
        checkpoint.layout.offset(epoch).touch()
    again = Journal(log, "a")
    again.held_back = 0
    recover(checkpoint, {"a": again})
    assert log == ["a1", "a2"]
    second = Committer(checkpoint, {"a": again})
    assert second.published == 2
    second.close()


def test_a_run_that_ends_well_leaves_only_what_a_later_run_will_ask_for(
    checkpoint: Checkpoint,
) -> None:
    sink = Journal([], "a")
    kept: list[frozenset[int]] = []
    sink.discard = kept.append  # type: ignore[method-assign]
    sink.flush = lambda: None  # type: ignore[method-assign]
    sink.held_back = 0
    committer = Committer(checkpoint, {"a": sink})
    for epoch in range(3):
        committer.record(manifest(checkpoint, epoch))
        commit(checkpoint, epoch)
    assert committer.wait_published(2, WAIT_S)
    committer.close(flush=True)
    assert kept == [frozenset({1, 2})]


def test_an_epoch_that_becomes_durable_while_a_run_ends_keeps_what_is_staged(
    checkpoint: Checkpoint,
) -> None:
    sink = Journal([], "a")
    kept: list[frozenset[int]] = []
    sink.discard = kept.append  # type: ignore[method-assign]
    publication = Publication(checkpoint, {"a": sink}, faults=Faults())
    for epoch in range(4):
        write_manifest(checkpoint.layout, manifest(checkpoint, epoch))
    commit(checkpoint, 0)
    publication.publish(manifest(checkpoint, 0))
    for epoch in (1, 2):
        commit(checkpoint, epoch)
    publication.tidy()
    # Epoch 3 is recorded: its commit may be under way.
    assert kept == [frozenset({1, 2, 3})]


def test_what_one_sink_shows_is_noted_before_another_is_asked_again(
    checkpoint: Checkpoint,
) -> None:
    def fail(epoch: int) -> None:
        raise SinkError("away")

    log: list[str] = []
    sinks = {"a": Journal(log, "a"), "b": Journal(log, "b", fail)}
    publication = Publication(checkpoint, sinks, faults=Faults())
    commit(checkpoint, 0)
    for _ in range(2):
        with pytest.raises(SinkError, match="away"):
            publication.publish(manifest(checkpoint, 0))
    assert log == ["a0"]
    assert checkpoint.progress().shown == {"a": 0, "b": -1}
    assert checkpoint.progress().settled == {"a": 0, "b": -1}
    checkpoint.layout.published.unlink()
    with pytest.raises(SinkError, match="away"):
        publication.publish(manifest(checkpoint, 0))
    assert not checkpoint.layout.published.exists(), "nothing new, nothing written"


def test_a_run_that_lost_the_lease_between_two_sinks_notes_nothing(checkpoint: Checkpoint) -> None:
    log: list[str] = []
    sinks = {"a": Journal(log, "a"), "b": Journal(log, "b")}
    publication = Publication(checkpoint, sinks, faults=Faults(), held=lambda: not log)
    commit(checkpoint, 0)
    with pytest.raises(EngineError, match="was lost"):
        publication.publish(manifest(checkpoint, 0))
    assert log == ["a0"]
    assert not checkpoint.layout.published.exists()


def test_closing_with_a_flush_settles_everything(checkpoint: Checkpoint) -> None:
    sink = Journal([], "a")
    sink.held_back = -1
    committer = Committer(checkpoint, {"a": sink})
    committer.record(manifest(checkpoint, 0))
    commit(checkpoint, 0)
    assert committer.wait_published(0, WAIT_S)
    assert checkpoint.progress().settled == {"a": -1}
    committer.close(flush=True)
    assert checkpoint.progress().settled == {"a": 0}


def test_kill_points_are_passed_in_the_order_of_the_protocol(checkpoint: Checkpoint) -> None:
    passed: list[str] = []

    class Recorder(Faults):
        def reach(self, point: str, epoch: int) -> None:
            passed.append(point)

    sinks = {"a": Journal([], "a"), "b": Journal([], "b")}
    committer = Committer(checkpoint, sinks, faults=Recorder())
    commit(checkpoint, 0)
    committer.record(manifest(checkpoint, 0))
    assert committer.wait_published(0, WAIT_S)
    committer.close()
    passed.remove("K6")  # the job's thread and the committer's are not ordered behind the manifest
    assert passed == ["K5", "K8", "K10", "K9", "K10", "K11"]


def test_old_manifests_go_when_every_sink_has_settled(checkpoint: Checkpoint) -> None:
    committer = Committer(checkpoint, {"a": Journal([], "a")})
    for epoch in range(25):
        committer.record(manifest(checkpoint, epoch))
        commit(checkpoint, epoch)
        assert committer.wait_published(epoch, WAIT_S)
    committer.close()
    kept = sorted(checkpoint.manifests())
    assert kept[-1] == 24
    assert 8 <= len(kept) <= 17


def test_manifests_are_not_listed_while_none_can_go(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Journal([], "a")
    sink.held_back = 20
    publication = Publication(checkpoint, {"a": sink}, faults=Faults())
    listed: list[int] = []
    plain = Checkpoint.manifests

    def counting(self: Checkpoint) -> dict[int, tuple[int, ...]]:
        listed.append(epoch)
        return plain(self)

    monkeypatch.setattr(Checkpoint, "manifests", counting)
    for epoch in range(80):
        write_manifest(checkpoint.layout, manifest(checkpoint, epoch))
        commit(checkpoint, epoch)
        publication.publish(manifest(checkpoint, epoch))
    assert listed == [16, 24]
    assert min(plain(checkpoint)) == 13


def test_a_refusal_ends_publication_at_once(checkpoint: Checkpoint) -> None:
    asked: list[int] = []

    def refuse(epoch: int) -> None:
        asked.append(epoch)
        raise SinkRefused("the record is too large")

    committer = Committer(checkpoint, {"a": Journal([], "a", refuse)})
    committer.record(manifest(checkpoint, 0))
    commit(checkpoint, 0)
    with pytest.raises(SinkRefused, match="too large"):
        committer.wait_published(0, WAIT_S)
    committer.close()
    assert asked == [0]
    assert checkpoint.progress().shown.get("a", -1) == -1
