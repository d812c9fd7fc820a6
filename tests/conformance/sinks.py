"""Sinks that are right, and sinks with one mistake each."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.connectors import SinkContext, SpooledSink, TwoPhaseSink

MEMORY: dict[str, list[dict[str, Any]]] = {}


@contextmanager
def database(path: str) -> Iterator[sqlite3.Connection]:
    found = sqlite3.connect(path, isolation_level=None, timeout=20, check_same_thread=False)
    found.execute("PRAGMA synchronous=OFF")
    found.execute("CREATE TABLE IF NOT EXISTS orders (key TEXT, number INTEGER, note TEXT)")
    found.execute(
        "CREATE TABLE IF NOT EXISTS staged (place TEXT, epoch INTEGER, task TEXT, rows TEXT)"
    )
    found.execute("CREATE TABLE IF NOT EXISTS markers (place TEXT PRIMARY KEY, epoch INTEGER)")
    try:
        yield found
    finally:
        found.close()


def rows_in(path: Path) -> list[dict[str, Any]]:
    with database(str(path)) as found:
        rows = found.execute("SELECT key, number, note FROM orders ORDER BY rowid").fetchall()
    return [dict(zip(("key", "number", "note"), row, strict=True)) for row in rows]


class Staged(TwoPhaseSink):
    """Right: rows wait in a table of their own, and move with their marker in one transaction."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.rows: list[dict[str, Any]] = []

    @property
    def place(self) -> str:
        return f"{self.context.incarnation}/{self.context.uid}"

    def open(self, context: SinkContext) -> None:
        self.database = database(self.path)
        self.connection = self.database.__enter__()

    def close(self) -> None:
        self.connection.close()

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.to_pylist()

    def stage(self) -> dict[str, Any]:
        values = (self.place, self.epoch, self.task, json.dumps(self.rows))
        self.connection.execute("INSERT INTO staged VALUES (?, ?, ?, ?)", values)
        return {"task": self.task}

    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            if self.marker() < epoch:
                for token in tokens:
                    self.show(self.staged(epoch, token))
                self.mark(epoch)
            self.connection.execute("COMMIT")
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise

    def discard(self, keep: frozenset[int]) -> None:
        epochs = "SELECT DISTINCT epoch FROM staged WHERE place = ?"
        for (epoch,) in self.connection.execute(epochs, (self.place,)).fetchall():
            if epoch not in keep:
                self.connection.execute(
                    "DELETE FROM staged WHERE place = ? AND epoch = ?", (self.place, epoch)
                )

    def recover(self) -> int | None:
        return None if self.marker() < 0 else self.marker()

    def staged(self, epoch: int, token: dict[str, Any]) -> list[dict[str, Any]]:
        query = "SELECT rows FROM staged WHERE place = ? AND epoch = ? AND task = ?"
        (text,) = self.connection.execute(query, (self.place, epoch, token["task"])).fetchone()
        return list(json.loads(text))

    def show(self, rows: list[dict[str, Any]]) -> None:
        self.connection.executemany("INSERT INTO orders VALUES (:key, :number, :note)", rows)

    def marker(self) -> int:
        query = "SELECT epoch FROM markers WHERE place = ?"
        found = self.connection.execute(query, (self.place,)).fetchone()
        return -1 if found is None else int(found[0])

    def mark(self, epoch: int) -> None:
        self.connection.execute("INSERT OR REPLACE INTO markers VALUES (?, ?)", (self.place, epoch))


class Spooled(SpooledSink):
    """Right, and short."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def publish(self, epoch: int, rows: pa.Table) -> None:
        place = f"{self.context.incarnation}/{self.context.uid}"
        with database(self.path) as found:
            found.execute("BEGIN IMMEDIATE")
            last = found.execute("SELECT epoch FROM markers WHERE place = ?", (place,)).fetchone()
            if last is None or last[0] < epoch:
                found.executemany(
                    "INSERT INTO orders VALUES (:key, :number, :note)", rows.to_pylist()
                )
                found.execute("INSERT OR REPLACE INTO markers VALUES (?, ?)", (place, epoch))
            found.execute("COMMIT")


class PublishesAtStage(Staged):
    def stage(self) -> dict[str, Any]:
        self.show(self.rows)
        return super().stage()

    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        self.mark(epoch)


class HasNoMarker(Staged):
    def marker(self) -> int:
        return -1


class MarksInASecondStep(Staged):
    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        if self.marker() < epoch:
            for token in tokens:
                self.show(self.staged(epoch, token))
            self.mark(epoch)


class AsksBeforeItLocks(Staged):
    """Another start may publish between the question and the transaction."""

    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        if self.marker() < epoch:
            self.connection.execute("BEGIN IMMEDIATE")
            for token in tokens:
                self.show(self.staged(epoch, token))
            self.mark(epoch)
            self.connection.execute("COMMIT")


class MarksFirst(Staged):
    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        if self.marker() < epoch:
            self.mark(epoch)
            for token in tokens:
                self.show(self.staged(epoch, token))


class ForgetsATask(Staged):
    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        super().publish(epoch, tokens[:1])


class ShowsAllThatIsStaged(Staged):
    """Without looking at the tokens: what failed attempts left, too."""

    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        query = "SELECT task FROM staged WHERE place = ? AND epoch = ?"
        tasks = self.connection.execute(query, (self.place, epoch)).fetchall()
        super().publish(epoch, [{"task": task} for (task,) in tasks])


class DiscardsTooMuch(Staged):
    def discard(self, keep: frozenset[int]) -> None:
        super().discard(frozenset())


class DiscardsOfOthers(Staged):
    def discard(self, keep: frozenset[int]) -> None:
        if not keep:
            self.connection.execute("DELETE FROM staged")


class AbortsOfOthers(Staged):
    """Takes what other tasks have staged for the epoch with it."""

    def abort(self) -> None:
        place = (self.place, self.epoch)
        self.connection.execute("DELETE FROM staged WHERE place = ? AND epoch = ?", place)


class RemembersInMemory(Staged):
    def stage(self) -> dict[str, Any]:
        MEMORY[self.task] = self.rows
        return {"task": self.task}

    def staged(self, epoch: int, token: dict[str, Any]) -> list[dict[str, Any]]:
        return MEMORY.get(token["task"], [])


class LosesOrder(Staged):
    def show(self, rows: list[dict[str, Any]]) -> None:
        super().show(rows[::-1])


class MarkerOfNobody(Staged):
    """One marker for all jobs and sinks."""

    def marker(self) -> int:
        query = "SELECT max(epoch) FROM markers"
        (found,) = self.connection.execute(query).fetchone()
        return -1 if found is None else int(found)


class AltersRows(Staged):
    def show(self, rows: list[dict[str, Any]]) -> None:
        super().show([{**row, "note": row["note"] or None} for row in rows])


class HoldsAConnection(Staged):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.held = sqlite3.connect(":memory:")


class SaysTooMuch(Staged):
    """Claims what is not there."""

    def recover(self) -> int | None:
        return self.marker() + 1


WRONG = [
    (PublishesAtStage, "visible before its epoch was durable"),
    (HasNoMarker, "there 2 times"),
    (MarksInASecondStep, "killed before sinks.py"),
    (AsksBeforeItLocks, "a driver hangs before sinks.py"),
    (MarksFirst, "lost"),
    (ForgetsATask, "lost"),
    (ShowsAllThatIsStaged, "its epoch or attempt failed"),
    (DiscardsTooMuch, "DiscardsTooMuch.publish failed"),
    (DiscardsOfOthers, "DiscardsOfOthers.publish failed"),
    (AbortsOfOthers, "every task is aborted"),
    (RemembersInMemory, "lost"),
    (LosesOrder, "behind a later row of key"),
    (MarkerOfNobody, "lost"),
    (AltersRows, "altered"),
    (HoldsAConnection, "cannot be sent to a worker"),
    (SaysTooMuch, "the last commit is absent"),
]
