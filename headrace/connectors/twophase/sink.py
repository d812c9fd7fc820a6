"""The sink that users write for a system of their own: stage in the workers, publish in the driver.

One object is described, many work: each task of each epoch has a copy of its own that writes and stages, and the driver
has one that publishes. Copies share nothing, as they are in different processes. What one learns and another needs
goes through the token that `stage` returns, and through nothing else.
"""

from __future__ import annotations

import copy
import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import pyarrow as pa

from headrace.connectors.twophase.blame import blamed
from headrace.endpoints import Json, Publisher, Receipt, Sink, SinkContext, Stager
from headrace.errors import UserCodeError

__all__ = ["TwoPhaseSink", "working_copy"]

_T = TypeVar("_T")

_KNOWN_WHERE = {
    "context": "is there from open on; the sink that you made yourself has none",
    "epoch": "is there in the copies that write and stage; publish is told the epoch",
    "task": "is there in the copies that write and stage; put it into the token if publish needs it",
}


class TwoPhaseSink(Sink):
    """A sink in two phases, in plain Python.

        class Orders(TwoPhaseSink):
            def write(self, batch): ...              # in a worker: take rows in
            def stage(self): ...                     # in a worker: make them durable, unseen; say where they are
            def publish(self, epoch, tokens): ...    # in the driver: show them; nothing the second time
            def discard(self, keep): ...             # in the driver: remove what was staged for other epochs

    `headrace.testing.check_sink` proves that it neither loses nor doubles rows, whatever is killed.

    Names made from `self.context` (`incarnation`, `uid`) never collide with those of another job or run. Raise
    `hr.errors.SinkError` when the system is away and the call may be made again (an `OSError` counts as one), and
    `hr.errors.SinkRefused` when somebody must act first.
    """

    #: Whose rows these are: job, incarnation, uid, schema, spool, fence.
    context: SinkContext
    #: The epoch and the task whose rows this copy writes; a task that is tried again has another name.
    epoch: int
    task: str

    def open(self, context: SinkContext) -> None:
        """Called first on every copy, in the process in which it works. Connect here, not in `__init__`."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows of this task and epoch in; never called without rows. Nobody may see them yet."""

    @abstractmethod
    def stage(self) -> dict[str, Any]:
        """Make what was written durable, unseen, and return a token by which `publish` finds it.

        The token is JSON, travels through the checkpoint, and is all that `publish` gets. Called once, behind the
        last `write`, and not at all without rows.
        """

    def abort(self) -> None:
        """The attempt failed: forget what was written. May come behind `stage`, and may not come at all."""

    @abstractmethod
    def publish(self, epoch: int, tokens: list[dict[str, Any]]) -> None:
        """Show the rows of a durable epoch, or do nothing if they are shown already.

        Epochs come in order; those without rows too, with no tokens. After a crash epochs come again whose rows are
        visible, wholly or in part: show the rows and note their epoch in one step, under incarnation and uid.
        """

    @abstractmethod
    def discard(self, keep: frozenset[int]) -> None:
        """Remove what this incarnation staged for epochs that are not in `keep`; it will not be published."""

    def recover(self) -> int | None:
        """The last epoch of this incarnation and uid that is visible, if the system outside knows; else None."""
        return None

    def close(self) -> None:
        """Called last, on every copy that ends in good order."""

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """A copy that writes one task's rows."""
        return _TaskStager(working_copy(self, context, epoch=epoch, task=task))

    def publisher(self, context: SinkContext) -> Publisher:
        """The copy that publishes."""
        return _TokenPublisher(working_copy(self, context))

    def __getattr__(self, name: str) -> Any:
        if name in _KNOWN_WHERE:
            raise AttributeError(f"self.{name} {_KNOWN_WHERE[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def working_copy(sink: _T, context: SinkContext, **known: Any) -> _T:
    """A copy that shares nothing with the sink, so that a list made in `__init__` is each task's own; opened."""
    copied: Any = copy.deepcopy(sink)
    vars(copied).update(known, context=context)
    with blamed(copied, "open", context.uid):
        copied.open(context)
    return copied  # type: ignore[no-any-return]


class _TaskStager(Stager):
    def __init__(self, sink: TwoPhaseSink) -> None:
        self._sink = sink
        self._uid = sink.context.uid
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._rows += batch.num_rows
            with blamed(self._sink, "write", self._uid):
                self._sink.write(batch)

    def close(self) -> Sequence[Receipt]:
        receipts = (self._staged(),) if self._rows else ()
        self._close()
        return receipts

    def abort(self) -> None:
        with blamed(self._sink, "abort", self._uid):
            self._sink.abort()
        self._close()

    def _staged(self) -> Receipt:
        with blamed(self._sink, "stage", self._uid):
            token = _checked(self._sink.stage(), self._sink)
        # Size and checksum are of files that Headrace reads; what a token leads to is the sink's own.
        return Receipt(self._uid, self._sink.task, self._rows, 0, 0, {"token": token})

    def _close(self) -> None:
        with blamed(self._sink, "close", self._uid):
            self._sink.close()


class _TokenPublisher(Publisher):
    def __init__(self, sink: TwoPhaseSink) -> None:
        self._sink = sink
        self._uid = sink.context.uid

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        tokens: list[Any] = [
            receipt.details["token"] for receipt in sorted(receipts, key=lambda each: each.path)
        ]
        with blamed(self._sink, "publish", self._uid):
            self._sink.publish(epoch, tokens)

    def published(self) -> int | None:
        with blamed(self._sink, "recover", self._uid):
            return self._sink.recover()

    def discard(self, keep: frozenset[int]) -> None:
        with blamed(self._sink, "discard", self._uid):
            self._sink.discard(keep)

    def close(self) -> None:
        with blamed(self._sink, "close", self._uid):
            self._sink.close()


def _checked(token: Any, sink: TwoPhaseSink) -> dict[str, Json]:
    """The token as it will come back from the checkpoint, or an error on the side that made it."""
    name = type(sink).__name__
    if not isinstance(token, dict):
        raise UserCodeError(
            f"{name}.stage returned {token!r}; return a dict by which publish finds the rows, {{}} if it needs none"
        )
    try:
        back: dict[str, Json] = json.loads(json.dumps(token, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UserCodeError(
            f"{name}.stage returned a token that is not JSON: {error}; use text, numbers, lists and dicts"
        ) from error
    if back != token:
        raise UserCodeError(
            f"{name}.stage returned {token!r}, which comes back from JSON as {back!r}; use text as keys, and lists"
        )
    return back
