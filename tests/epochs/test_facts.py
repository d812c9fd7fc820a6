import json
from dataclasses import replace

import pytest

from headrace._epochs.facts import FIRST_LIMIT, TARGET_US, Facts
from headrace._epochs.offset import Offset
from headrace.errors import CheckpointDamaged

OFFSET = Offset(0, {"s": {"0": (0, 10)}, "f": {"files": (3, 5)}}, {"s": 4}, {}, 99)


def after(facts: Facts, rows: int, duration_us: int | None) -> Facts:
    return facts.after(
        OFFSET, maxima={"s": {"0": 7}}, rows={"s": rows}, size=rows * 8, duration_us=duration_us
    )


def test_facts_survive_the_manifest() -> None:
    facts = replace(after(Facts(), 10, 1_000), outlooks={"w": [None, 0, 7], "v": [3, 2, None]})
    assert facts.due_us == 7
    assert Facts.from_json(json.loads(json.dumps(facts.to_json()))) == facts


def test_facts_that_are_not_ours_are_damage() -> None:
    with pytest.raises(CheckpointDamaged):
        Facts.from_json({"tracker": {}, "mood": 3})


def test_a_full_and_fast_epoch_lets_the_next_be_larger() -> None:
    assert after(Facts(), FIRST_LIMIT, 500_000).limit == 4 * FIRST_LIMIT
    assert after(Facts(), FIRST_LIMIT, 1).limit == 4 * FIRST_LIMIT


def test_an_epoch_that_was_not_full_proves_nothing() -> None:
    assert after(Facts(), FIRST_LIMIT // 2, 1_000).limit == FIRST_LIMIT


def test_a_slow_epoch_makes_the_next_smaller_but_not_tiny() -> None:
    assert after(Facts(limit=400_000), 400_000, 5_000_000).limit == 200_000
    assert after(Facts(limit=10_000), 10_000, 60_000_000).limit == 10_000


def test_an_epoch_near_the_target_or_of_an_earlier_run_changes_nothing() -> None:
    assert after(Facts(), FIRST_LIMIT, 1_500_000).limit == FIRST_LIMIT
    assert after(Facts(), FIRST_LIMIT, None).limit == FIRST_LIMIT


def test_densities_are_kept_while_a_source_rests() -> None:
    facts = Facts().after(OFFSET, maxima={}, rows={"f": 300}, size=900, duration_us=None)
    assert facts.rows_per_position["f"] == 150.0
    assert facts.bytes_per_row == 3.0
    empty = Offset(1, {"f": {"files": (5, 5)}}, {}, {}, 100)
    rested = facts.after(empty, maxima={}, rows={}, size=0, duration_us=None)
    assert rested.rows_per_position["f"] == 150.0
    assert rested.bytes_per_row == 3.0


def test_partitions_join_with_the_watermark_of_their_first_epoch() -> None:
    part = after(Facts(), 10, None).tracker.sources["s"]["0"]
    assert (part.joined_us, part.active_us, part.max_us) == (4, 99, 7)


def test_an_epoch_may_be_meant_to_take_longer() -> None:
    def limit(target_us: int) -> int:
        full = Facts(limit=100_000)
        after = full.after(
            OFFSET, maxima={}, rows={"s": 100_000}, size=1, duration_us=900_000, target_us=target_us
        )
        return after.limit

    assert limit(TARGET_US) == 100_000
    assert limit(2 * TARGET_US) == 400_000
    assert limit(TARGET_US // 4) == 50_000
