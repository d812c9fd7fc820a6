"""The numbers before a framed message, which say its type: written, read, and refused if they are none."""

import pytest

from headrace.formats.messages.protobuf.indexes import cut, written

ENDLESS = b"\xff" * 1_000_000
CUT_OFF = "the message ends before it says which type of its schema it is"


@pytest.mark.parametrize("place", [[0], [1], [0, 3], [2, 0, 300], [2**62]])
def test_numbers_are_read_as_they_were_written(place: list[int]) -> None:
    seen: list[list[int]] = []
    good, bad = cut([written(place) + b"rest"], lambda numbers: seen.append(list(numbers)))
    assert (good, bad) == ([(0, b"rest")], [])
    assert seen[-1] == place


@pytest.mark.parametrize("bad", [b"", b"\x04", b"\x02\x80", b"\x80" * 9 + b"\x80\x01\x02rest"])
def test_a_message_without_its_numbers_leaves_the_others_alone(bad: bytes) -> None:
    assert cut([bad, b"\x00x"], lambda _: None) == ([(1, b"x")], [(0, CUT_OFF)])


@pytest.mark.parametrize("before", [b"", b"\x02"])
def test_a_number_that_does_not_end_is_not_built(before: bytes) -> None:
    """Its bits would be read to the end of the message, each of them moving all that came before."""
    message = _Counted(before + ENDLESS + b"\x01")
    assert cut([message], lambda _: None) == ([], [(0, CUT_OFF)])
    assert message.asked <= 12


class _Counted(bytes):
    """Bytes that know how many were looked at."""

    asked = 0

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        self.asked += isinstance(at, int)
        return super().__getitem__(at)
