"""Which message type of its file a framed Protobuf message is: a list of numbers behind the id of the schema.

The count and the numbers are varints with a zigzag sign; the first type of a file, `[0]`, is one zero byte.
"""

from collections.abc import Callable, Sequence

__all__ = ["cut", "written"]

#: Octets of a number of 64 bits.
_LONGEST = 10

_Numbered = list[tuple[int, bytes]]


def written(place: Sequence[int]) -> bytes:
    """The numbers as they stand before a message."""
    if list(place) == [0]:
        return b"\x00"
    return b"".join(_varint(number << 1) for number in (len(place), *place))


def cut(
    messages: Sequence[bytes], refusal: Callable[[Sequence[int]], str | None]
) -> tuple[_Numbered, list[tuple[int, str]]]:
    """Messages without their numbers and those that `refusal` says something of, each with its place."""
    first = refusal([0])
    good: _Numbered = []
    bad: list[tuple[int, str]] = []
    for place, message in enumerate(messages):
        cause, start = first, 1
        if message[:1] != b"\x00":
            try:
                numbers, start = _read(message)
                cause = refusal(numbers)
            except IndexError:
                cause = "the message ends before it says which type of its schema it is"
        if cause is None:
            good.append((place, message[start:]))
        else:
            bad.append((place, cause))
    return good, bad


def _read(message: bytes) -> tuple[list[int], int]:
    count, at = _number(message, 0)
    numbers = []
    for _ in range(count):
        number, at = _number(message, at)
        numbers.append(number)
    return numbers, at


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Without a bound a megabyte of 0xFF would be one number, at a cost that grows with the square of its length."""
    value = 0
    for place in range(_LONGEST):
        octet = message[at + place]
        value |= (octet & 0x7F) << 7 * place
        if octet < 0x80:
            return value >> 1, at + place + 1
    raise IndexError("a number has no end")


def _varint(value: int) -> bytes:
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
