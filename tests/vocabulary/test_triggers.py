"""The vocabulary of triggers: what can be said, what is refused, what a checkpoint calls it."""

from datetime import timedelta
from typing import Any

import pytest

from headrace import triggers
from headrace.errors import BuildError
from headrace.triggers import EarlyLate, Trigger, TriggerResult

SECOND = timedelta(seconds=1)


class Mine(Trigger):
    """One of a user's own, which cannot be used with sessions."""

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        return TriggerResult.CONTINUE


@pytest.mark.parametrize(
    ("trigger", "name"),
    [
        (triggers.event_time(), "event_time()"),
        (triggers.processing_time(), "processing_time()"),
        (triggers.continuous_event_time(SECOND), "continuous_event_time(0:00:01)"),
        (triggers.continuous_processing_time(SECOND), "continuous_processing_time(0:00:01)"),
        (triggers.count(3), "count(3)"),
        (triggers.never(), "never()"),
        (triggers.end_of_input(), "end_of_input()"),
        (triggers.purging(triggers.count(3)), "purging(count(3))"),
        (triggers.early(every=SECOND), "early(every=0:00:01).late(each=True)"),
        (
            triggers.early(count=5, time="event").late(every=SECOND),
            'early(count=5, time="event").late(every=0:00:01)',
        ),
        (triggers.event_time().late(count=1), "event_time().late(count=1)"),
        (triggers.any_of(triggers.count(3), Mine()), "any_of(count(3), Mine)"),
        (
            triggers.repeatedly(triggers.after_each(triggers.count(1), triggers.all_of(Mine(), Mine()))),
            "repeatedly(after_each(count(1), all_of(Mine, Mine)))",
        ),
        (triggers.never().or_finally(triggers.count(2)), "never().or_finally(count(2))"),
        (Mine().or_finally(triggers.event_time()), "Mine.or_finally(event_time())"),
    ],
)  # fmt: skip
def test_the_name_says_the_whole_trigger(trigger: Trigger, name: str) -> None:
    assert trigger.name == name


def test_early_and_late_are_fields_that_an_engine_can_read() -> None:
    assert triggers.early(every=SECOND).late(count=4) == EarlyLate(
        early_every_us=1_000_000, late_each=False, late_count=4
    )
    assert triggers.early(count=2, time="event") == EarlyLate(early_count=2, early_time="event")


def test_the_last_word_on_late_rows_counts() -> None:
    trigger = triggers.early(count=2).late(count=4).late(every=SECOND)
    assert (trigger.late_count, trigger.late_every_us, trigger.late_each) == (
        None,
        1_000_000,
        False,
    )


def test_a_composition_can_merge_if_all_its_parts_can() -> None:
    assert triggers.any_of(triggers.count(1), triggers.purging(triggers.event_time())).can_merge
    assert not triggers.any_of(triggers.count(1), triggers.purging(Mine())).can_merge


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: triggers.count(0),
            "triggers.count takes a whole number of rows, 1 or more, not 0",
        ),
        (lambda: triggers.count(True), "not True"),
        (lambda: triggers.continuous_event_time(timedelta(0)), "longer than zero"),
        (lambda: triggers.continuous_processing_time(5), "must be a datetime.timedelta"),
        (triggers.early, "every=timedelta"),
        (lambda: triggers.early(every=SECOND, count=1), "one of them"),
        (lambda: triggers.early(every=SECOND, time="wall"), 'choose "event" or "processing"'),
        (lambda: triggers.early(count=1).late(), "one of them"),
        (lambda: triggers.early(count=1).late(each=True, count=2), "one of them"),
        (lambda: triggers.early(count=1).late(count=0), "1 or more"),
        (lambda: triggers.any_of(triggers.count(1)), "between two and sixty triggers, not 1"),
        (lambda: triggers.all_of(triggers.count(1), "no"), "all_of takes triggers"),
        (lambda: triggers.count(1).or_finally(None), "or_finally takes triggers"),
        (lambda: triggers.purging(3), "purging takes triggers"),
    ],
)
def test_what_cannot_be_meant_is_refused(call: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        call()
