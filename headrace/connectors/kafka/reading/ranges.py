"""The records of a range of offsets, from a consumer that stands somewhere in the partition.

A range ends by position: with the record that is in it last, with one that is past it, or where the partition ends.
No record is waited for, because the last offsets of a range may be marks of transactions or records of aborted ones,
and no such offset ever comes. A record past the range is kept for the next one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.connectors.kafka.clients import LOG, REFUSED_S, is_final, library, sentence
from headrace.connectors.kafka.reading.consumers import Seat, seat
from headrace.connectors.kafka.reading.metadata import Needs, Records
from headrace.connectors.kafka.reading.positions import TopicPartition, name_of
from headrace.errors import EngineError, InputError, SetupError

__all__ = ["OnLoss", "Range", "records_of"]

OnLoss = Literal["fail", "skip"]

#: Records at a time from the library: more of them do not fit the processor's cache.
_CHUNK = 2_000
_BATCH = 20_000
_BATCH_BYTES = 16 * 2**20
_WAIT_S = 0.1
_LOST = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"})


@dataclass(frozen=True, slots=True)
class Range:
    """What is read, and what to do when it cannot be."""

    partition: TopicPartition
    start: int
    end: int
    needs: Needs
    on_loss: OnLoss = "fail"
    patience_s: float = 120.0

    @property
    def name(self) -> str:
        """The partition as the engine calls it."""
        return name_of(*self.partition)


def records_of(config: Mapping[str, Any], wanted: Range) -> Iterator[Records]:
    """The records of `[start, end)` in order, a few ten thousand at a time."""
    with seat(config, wanted.partition, wanted.start) as held:
        gathered, silence = Records(), _listening(held)
        # What the range before left may hold all of this one, so it comes first, wherever the consumer stands.
        _take_in(held, wanted, held.kept(), gathered, since=wanted.start)
        while held.position < wanted.end:
            _round(held, wanted, gathered, silence)
            if len(gathered) >= _BATCH or gathered.nbytes >= _BATCH_BYTES:
                yield gathered
                gathered, silence = Records(), _listening(held)
        held.floor = wanted.end
        if len(gathered):
            yield gathered


@dataclass(slots=True)
class _Silence:
    """Since when nothing came, and where the library says that the partition ends."""

    since_s: float = field(default_factory=time.monotonic)
    ends: int | None = None


def _listening(held: Seat) -> _Silence:
    """What was complained of while nobody listened says nothing about how long it has been so."""
    held.complaints.forget()
    return _Silence()


def _round(held: Seat, wanted: Range, gathered: Records, silence: _Silence) -> None:
    """Take in what is there, and only then heed what the library says: it may send the consumer to where it stands.

    The garbage collector rests meanwhile: the library's records are a lot of objects that are gone before it would
    look at them again, and looking at each chunk of them several times took as long as making them.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        found = held.records(min(_CHUNK, wanted.end - held.position), _WAIT_S)
        good, errors = _apart(found)
        came = _take_in(held, wanted, good, gathered, since=held.position)
        if errors:
            silence.ends = _told(held, wanted, errors) or silence.ends
        if came:
            silence.since_s = time.monotonic()
            held.complaints.forget()
        elif held.position < wanted.end:
            _check_patience(held, wanted, silence)
    finally:
        if collects:
            gc.enable()


def _apart(found: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Records, and what the library says in between."""
    if not found:
        return (), ()
    errors = list(map(type(found[0]).error, found))
    # By type: the library's errors raise when they are compared with None.
    if {*map(type, errors)} == {type(None)}:
        return found, ()
    pairs = list(zip(found, errors, strict=True))
    return [m for m, error in pairs if error is None], [
        m for m, error in pairs if error is not None
    ]


def _take_in(
    held: Seat, wanted: Range, found: Sequence[Any], gathered: Records, *, since: int
) -> bool:
    """Those of the range; later ones are kept, those before `since` were had before or never asked for."""
    if not found:
        return False
    held.position = max(held.position, found[-1].offset() + 1)
    if found[0].offset() < since:
        found = [message for message in found if message.offset() >= since]
    if found and found[-1].offset() >= wanted.end:
        held.surplus = [message for message in found if message.offset() >= wanted.end]
        found = [message for message in found if message.offset() < wanted.end]
    if found:
        gathered.add(found, wanted.needs)
    return True


def _told(held: Seat, wanted: Range, errors: Sequence[Any]) -> int | None:
    """Go by what the library says; where the partition ends, if it says that."""
    ends = None
    for message in errors:
        error = message.error()
        if error.name() == "_PARTITION_EOF":
            ends = message.offset()
            held.position = max(held.position, ends)
        elif error.name() in _LOST:
            _step_over(held, wanted, error)
        elif is_final(error) or error.fatal():
            raise SetupError(f"{wanted.name} cannot be read: {sentence(error)}; see options=")
        else:
            held.complaints(error)
    return ends


def _step_over(held: Seat, wanted: Range, told: Any) -> None:
    """Records of the range are gone: an error, unless the user said that it is none."""
    if held.position >= wanted.end:
        # Not of this range: the next one is told again, and by then perhaps nothing is wrong.
        held.resume()
        return
    try:
        asked = library().TopicPartition(*wanted.partition)
        first, end = held.consumer.get_watermark_offsets(asked, timeout=30)
    except library().KafkaException as error:
        raise EngineError(f"{wanted.name}: {sentence(error)}") from error
    if first <= held.position <= end:
        # It exists: a consumer is not let at it for other reasons too, such as a leader that changes. They pass.
        LOG.info("%s at %s: %s; asking again", wanted.name, held.position, sentence(told))
        held.complaints(told)
        held.resume()
        return
    if held.position > end:
        raise InputError(
            f"{wanted.name} ends at {end}, but the job has read up to {held.position}: this is not the"
            " topic that the job began with; start with a new checkpoint"
        )
    lost = f"the offsets {held.position} to {min(first, wanted.end) - 1} of {wanted.name}"
    if wanted.on_loss == "fail":
        raise InputError(
            f"{lost} were not read yet and are gone (the oldest is {first}): the topic's retention was"
            ' shorter than the job was behind; on_data_loss="skip" goes on behind the gap'
        )
    LOG.warning("%s are gone; they are skipped, as on_data_loss says", lost)
    held.send(min(first, wanted.end))


def _check_patience(held: Seat, wanted: Range, silence: _Silence) -> None:
    refusal = held.complaints.refusal(min(REFUSED_S, wanted.patience_s))
    if refusal is not None:
        raise SetupError(f"{wanted.name} cannot be read: {refusal}; see options=")
    if time.monotonic() - silence.since_s < wanted.patience_s:
        return
    ends = silence.ends
    why = "the brokers gave no answer" if ends is None else f"the partition ends at {ends}"
    raise EngineError(
        f"{wanted.name}: nothing came for {wanted.patience_s:.0f} s while reading"
        f" {held.position} to {wanted.end - 1}: {held.complaints.why(why)}"
    )
