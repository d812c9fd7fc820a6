"""Messages as the lines of one text, so that all of them are parsed at once.

The good way costs a join and one call of the decoder. Only if that fails is each message looked at: those that are
no record at all are told by what they are, and the others are halved until the bad ones stand alone.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from headrace.formats.lines import Block, Decoder, Int64s, TooManyBad, decode
from headrace.formats.messages.format import BadMessage, DecodedMessages

__all__ = [
    "TOMBSTONE",
    "Cause",
    "Glance",
    "Judge",
    "are_lines",
    "as_lines",
    "decoded_at_once",
    "decoded_in_doubt",
    "decoded_one_by_one",
    "in_order",
    "moved",
    "tombstones",
    "without_bom",
]

TOMBSTONE = "the message is a tombstone (no value)"
_BOM = b"\xef\xbb\xbf"

#: Why a message was refused, as users can act on it: the message and what the decoder said.
Cause = Callable[[bytes, str], str]
#: What a look at one message tells: why it is certainly bad, or whether there is doubt. Quicker than a decoder's call.
Glance = Callable[[bytes], str | bool]
#: Rows of messages with their places, the bad ones found by halving; `TooManyBad` if they are more than the number.
Judge = Callable[[Sequence[bytes], Int64s, int | None], DecodedMessages]
#: A call of the decoder costs as much as a hundred messages, and halving about ten calls for a bad one.
_MOST_HALVED = 16


def as_lines(values: Sequence[bytes | None]) -> bytes | None:
    """The messages behind each other, parted by line breaks; None if that would not show how many there are."""
    try:
        content = b"\n".join(values)  # type: ignore[arg-type]
    except TypeError:  # a tombstone; asking for one beforehand costs more than the join
        return None
    # A text that ends with a line break may be a line fewer than there are messages.
    return None if content.endswith(b"\n") else content


def are_lines(content: bytes, count: int) -> bool:
    """Whether each of the messages that were joined is one line, with nothing odd at its ends."""
    odd = b"\r" in content or (_BOM[:1] in content and _BOM in content)
    return not odd and content.count(b"\n") == count - 1


def decoded_at_once(content: bytes | None, count: int, decoder: Decoder) -> DecodedMessages | None:
    """The rows of all messages, or None if one of them is bad."""
    if content is None:
        return None
    try:
        batch = decoder(content)
    except ValueError:
        return None
    return DecodedMessages(batch, np.arange(count)) if batch.num_rows == count else None


def decoded_one_by_one(
    messages: Sequence[bytes],
    places: Int64s,
    decoder: Decoder,
    schema: pa.Schema,
    cause: Cause,
    *,
    most: int | None = None,
) -> DecodedMessages:
    """The rows of the messages that have one; none of them may hold a line break."""
    sizes = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages)) + 1
    block = Block(b"\n".join([*messages, b""]), np.cumsum(sizes) - sizes, np.arange(len(messages)))
    decoded = decode(block, decoder, schema, most=most)
    bad = [
        BadMessage(int(places[found.line]), cause(messages[found.line], found.cause))
        for found in decoded.bad
    ]
    return DecodedMessages(decoded.batch, places[decoded.lines], tuple(bad))


def decoded_in_doubt(
    messages: Sequence[bytes], places: Int64s, judge: Judge, glance: Glance, schema: pa.Schema
) -> DecodedMessages:
    """What `judge` says, also where halving would not pay: a glance tells which messages to judge alone."""
    try:
        return judge(messages, places, _MOST_HALVED)
    except TooManyBad:
        seen = [glance(message) for message in messages]
    bad = [BadMessage(int(places[n]), said) for n, said in enumerate(seen) if isinstance(said, str)]
    doubtful = np.flatnonzero([said is True for said in seen])
    parts = [
        judge([messages[n] for n in group], places[group], None)
        for group in (np.flatnonzero([said is False for said in seen]), *doubtful[:, None])
    ]
    return in_order(parts, bad, schema)


def in_order(
    parts: Sequence[DecodedMessages], bad: Sequence[BadMessage], schema: pa.Schema
) -> DecodedMessages:
    """Parts of one batch of messages as one, rows and bad ones by their places."""
    places = np.concatenate([np.arange(0), *(part.places for part in parts)])
    order = np.argsort(places, kind="stable")
    empty = pa.RecordBatch.from_pylist([], schema)
    batch = pa.concat_batches([empty, *(part.batch for part in parts)])
    if (np.diff(order) != 1).any():
        batch = batch.take(pa.array(order))
    found = [*bad, *(each for part in parts for each in part.bad)]
    found.sort(key=lambda message: message.place)
    return DecodedMessages(batch, places[order], tuple(found))


def moved(decoded: DecodedMessages, places: Int64s) -> DecodedMessages:
    """What was made of some messages of a batch, which stood in these places."""
    bad = tuple(BadMessage(int(places[each.place]), each.cause) for each in decoded.bad)
    return DecodedMessages(decoded.batch, places[decoded.places], bad)


def tombstones(messages: Sequence[bytes | None]) -> list[BadMessage]:
    """The messages that are nothing, which no row can be."""
    return [BadMessage(place, TOMBSTONE) for place, m in enumerate(messages) if m is None]


def without_bom(message: bytes) -> bytes:
    """A message without the mark that some editors put at the front."""
    return message.removeprefix(_BOM)
