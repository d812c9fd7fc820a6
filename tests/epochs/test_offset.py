import json

import pytest

from headrace._epochs.offset import INITIAL, Offset
from headrace._watermarks.generators import Generated
from headrace.errors import CheckpointDamaged
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

OFFSET = Offset(
    epoch=3,
    ranges={"bids": {"0": (0, 5), "1": (7, 7)}, "é\ud800": {"p": (1, 2)}},
    watermarks={"bids": END_OF_TIME},
    before={"bids": NO_WATERMARK},
    clock_us=12,
    final=True,
    generators={"bids": {"1": Generated(None, {"n": 1}), "0": Generated(7, {"seen": [1.5, None]})}},
)


@pytest.mark.parametrize("offset", [OFFSET, INITIAL])
def test_an_offset_survives_sparks_log(offset: Offset) -> None:
    text = json.dumps(offset.to_json())
    assert Offset.from_json(json.loads(text)) == offset


def test_equal_offsets_have_equal_text() -> None:
    turned = Offset(
        epoch=3,
        ranges={"é\ud800": {"p": (1, 2)}, "bids": {"1": (7, 7), "0": (0, 5)}},
        watermarks={"bids": END_OF_TIME},
        before={"bids": NO_WATERMARK},
        clock_us=12,
        final=True,
        generators={
            "bids": {"0": Generated(7, {"seen": [1.5, None]}), "1": Generated(None, {"n": 1})}
        },
    )
    assert json.dumps(turned.to_json()) == json.dumps(OFFSET.to_json())


def test_every_flipped_byte_is_noticed() -> None:
    text = json.dumps(OFFSET.to_json()).encode()
    for place in range(len(text)):
        flipped = text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]
        try:
            document = json.loads(flipped)
        except ValueError:
            continue
        if document == OFFSET.to_json():
            continue
        with pytest.raises(CheckpointDamaged):
            Offset.from_json(document)


@pytest.mark.parametrize("document", [{}, {"epoch": 1}, {"crc": 0}])
def test_something_else_is_not_an_offset(document: dict[str, int]) -> None:
    with pytest.raises(CheckpointDamaged, match="offsets/7"):
        Offset.from_json(document, where="offsets/7")


def test_positions_count_rows_of_all_sources() -> None:
    assert OFFSET.positions == 6
    assert OFFSET.position("bids", "1") == 7
    assert OFFSET.position("bids", "9") is None
