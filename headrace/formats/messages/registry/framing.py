"""Confluent's frame around a message: a zero byte and the id of the writer's schema in four bytes.

    0x00 | id, big end first | what the format writes

Protobuf puts the place of the message type in its file between the id and the message.
"""

import struct

import numpy as np

from headrace.formats.messages.format import BadMessage
from headrace.formats.messages.packed import Packed

__all__ = ["HEADER", "by_schema", "frame"]

#: So many bytes are the frame.
HEADER = 5


def frame(number: int) -> bytes:
    """What stands before a message of the schema with this id."""
    return struct.pack(">bI", 0, number)


def by_schema(messages: Packed) -> tuple[dict[int, Packed], list[BadMessage]]:
    """What the frames hold, by the id of its schema; and the messages that have no frame."""
    at = np.minimum(messages.starts, len(messages.octets) - HEADER)
    heads = messages.octets[at[:, None] + np.arange(HEADER)]
    framed = (messages.ends - messages.starts >= HEADER) & (heads[:, 0] == 0)
    numbers = np.ascontiguousarray(heads[:, 1:]).view(">u4")[:, 0]
    inner = messages.behind(HEADER)
    groups = {
        int(number): inner.only(framed & (numbers == number))
        for number in np.unique(numbers[framed])
    }
    return groups, [_unframed(int(place)) for place in messages.places[~framed]]


def _unframed(place: int) -> BadMessage:
    return BadMessage(
        place,
        "the message does not begin with the id of a schema (a zero byte and four more);"
        " if it was written without a registry, leave registry= away",
    )
