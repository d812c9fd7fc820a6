"""Which offsets there are, watched by a thread beside the planner.

    every 50 ms, and when asked     where each partition ends now
    every 2 s                       where it begins now; whether topics are still the same ones
    every `discover_every`          new partitions and, with a pattern, new topics

Brokers that are away stop nothing here: the last known spans stay and are called stale, one line is logged, and the
thread asks on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace.connectors.kafka.clients import LOG, REFUSED_S, is_final, library, sentence
from headrace.connectors.kafka.reading.cluster import Cluster, Gone
from headrace.connectors.kafka.reading.positions import TopicPartition, partition_of
from headrace.connectors.kafka.reading.survey import Survey, Watched
from headrace.endpoints import Enumerator, Span
from headrace.errors import EngineError, InputError, SetupError

__all__ = ["KafkaEnumerator"]

_POLL_S = 0.05
#: Not more often than this, however often spans are asked for.
_GAP_S = 0.015
_SURVEY_S = 2.0
_ANSWER_S = 5.0
_RETRY_S = 0.25
#: How long a start waits for brokers.
_START_S = 30.0
#: A topic that is not there for so long is gone; brokers that start up may not know it yet.
_GONE_S = 5.0


class KafkaEnumerator(Enumerator):
    """Looks once when it is started, then watches."""

    def __init__(
        self,
        config: Mapping[str, Any],
        watched: Watched,
        directory: Path,
        *,
        group: str | None = None,
        committed_only: bool = True,
        discover_s: float = 10.0,
    ) -> None:
        self._address = config["bootstrap.servers"]
        self._cluster = Cluster(config, committed_only=committed_only, timeout_s=_ANSWER_S)
        self._survey = Survey(self._cluster, watched, directory)
        self._watched, self._group, self._discover_s = watched, group, discover_s

        self._spans: Mapping[str, Span] = {}
        self._error: Exception | None = None
        #: The newest positions that the group was not told; taken out and put in by two threads.
        self._pending: deque[Mapping[TopicPartition, int]] = deque(maxlen=1)
        self._said: set[str] = set()
        self._gone_since: float | None = None
        self._closing, self._asked = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="headrace-kafka", daemon=True)

    def start(self) -> None:
        """Look once; `SetupError` (of a later start `EngineError`) if the brokers do not answer, `InputError` if topics are not what they must be."""
        began = time.monotonic()
        while not self._first_look(time.monotonic() - began):
            time.sleep(_RETRY_S)
        self._spans = self._survey.spans()
        self._thread.start()

    def spans(self) -> Mapping[str, Span]:
        """What is known; the thread is asked to look again."""
        if self._error is not None:
            raise self._error
        self._asked.set()
        return self._spans

    def durable(self, positions: Mapping[str, int]) -> None:
        """Have these offsets committed to the group, if there is one."""
        if self._group is not None and positions:
            self._pending.append({partition_of(name): to for name, to in positions.items()})

    def close(self) -> None:
        """Commit what is pending and stop to watch."""
        self._closing.set()
        self._asked.set()
        if self._thread.is_alive():
            self._thread.join()

    def _first_look(self, waited_s: float) -> bool:
        try:
            self._survey.begin()
        except Gone as gone:
            if waited_s > _GONE_S:
                raise self._vanished(gone) from gone
            return False
        except library().KafkaException as error:
            self._cluster.listen()
            complaints = self._cluster.complaints
            refused = complaints.final is not None or is_final(error)
            if waited_s < (REFUSED_S if refused else _START_S):
                complaints.forget()
                return False
            # A job that ran before is started again until they are back; a new one has a wrong address.
            away = not refused and self._survey.resumes
            raise (EngineError if away else SetupError)(
                f"Kafka at {self._address} cannot be asked for topics: {complaints.why(error)};"
                " see the address and options="
            ) from error
        return True

    def _watch(self) -> None:
        survey, grown = time.monotonic(), time.monotonic()
        try:
            while not self._closing.is_set():
                now = time.monotonic()
                due: list[Callable[[], None]] = [self._survey.look_ahead]
                # What is there again may be another topic of the name.
                if now - survey >= _SURVEY_S or self._gone_since is not None:
                    due, survey = [self._survey.recognise, self._survey.look_back, *due], now
                if now - grown >= self._discover_s:
                    due, grown = [self._survey.grow, *due], now
                self._look(due)
                self._commit()
                self._pause(time.monotonic() - now)
            self._commit()
        except Exception as error:  # noqa: BLE001 - told to whoever asks for the spans
            self._error = error

    def _look(self, due: list[Callable[[], None]]) -> None:
        """One round of questions; an answer that does not come leaves the spans as they are."""
        try:
            for ask in due:
                ask()
        except Gone as gone:
            self._gone_since = self._gone_since or time.monotonic()
            if time.monotonic() - self._gone_since > _GONE_S:
                raise self._vanished(gone) from gone
        except library().KafkaException as error:
            self._cluster.listen()
            why = self._cluster.complaints.why(error)
            self._spans = {name: replace(span, stale=True) for name, span in self._spans.items()}
            self._say("away", f"Kafka at {self._address} does not answer: {why}; asking on")
        else:
            self._gone_since = None
            self._spans = self._survey.spans()
            self._unsay("away", f"Kafka at {self._address} answers again")

    def _commit(self) -> None:
        """Tell the group when brokers answer; nothing depends on it, so a failure is told once and that is all."""
        if not self._pending or self._group is None or "away" in self._said:
            return
        try:
            self._cluster.commit(self._group, self._pending.pop())
        except library().KafkaException as error:
            self._say(
                "commit",
                f"offsets were not committed to the group {self._group!r}: {sentence(error)};"
                " the job does not need them, lag tools do",
            )
        else:
            self._unsay("commit", f"offsets are committed to the group {self._group!r} again")

    def _pause(self, took_s: float) -> None:
        # Thousands of partitions are asked for less often.
        self._closing.wait(min(max(_GAP_S, 5 * took_s), 0.5))
        self._asked.wait(_POLL_S - _GAP_S)
        self._asked.clear()

    def _vanished(self, gone: Gone) -> InputError:
        return InputError(
            f"the topic {gone.topic!r} does not exist at {self._address}: create it before the job starts;"
            " if it was deleted, what the job has not read is lost and the checkpoint is of no use for a"
            " new one"
        )

    def _say(self, topic: str, line: str) -> None:
        if topic not in self._said:
            self._said.add(topic)
            LOG.warning(line)

    def _unsay(self, topic: str, line: str) -> None:
        if topic in self._said:
            self._said.discard(topic)
            self._cluster.complaints.forget()
            LOG.warning(line)
