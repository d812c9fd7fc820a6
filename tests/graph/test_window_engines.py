"""Which engine does a window: columns where they can, row by row for the rest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headrace import evictors, triggers
from headrace._graph.nodes import SessionAggregate, WindowAggregate, WindowProcess
from headrace._graph.windows import aggregate_node
from headrace.windows import Cumulating, Hopping, Session, Tumbling

SECOND = timedelta(seconds=1)
TUMBLING, HOPPING = Tumbling(10 * SECOND), Hopping(10 * SECOND, 2 * SECOND)
GROWING = Cumulating(10 * SECOND, SECOND)
EARLY = triggers.early(every=SECOND)


@pytest.mark.parametrize("window", [TUMBLING, HOPPING, GROWING], ids=str)
@pytest.mark.parametrize("accumulation", ["accumulating", "retracting"])
@pytest.mark.parametrize(
    "trigger",
    [
        None,
        triggers.event_time(),
        EARLY,
        EARLY.late(each=True),
        triggers.early(every=SECOND, time="event"),
    ],
    ids=str,
)
def test_panes_do_early_and_late_firings(window: Any, accumulation: Any, trigger: Any) -> None:
    kind, fields = aggregate_node(window, trigger, accumulation, None)
    assert kind is WindowAggregate
    # What fires as it would without a trigger is the same step to a checkpoint.
    assert fields["trigger"] is (None if trigger in (None, triggers.event_time()) else trigger)


@pytest.mark.parametrize(
    "trigger",
    [
        triggers.count(3),
        triggers.early(count=3),
        EARLY.late(every=SECOND),
        EARLY.late(count=1),
        triggers.continuous_event_time(SECOND),
        triggers.purging(EARLY),
    ],
    ids=lambda trigger: trigger.name,
)
def test_other_triggers_go_row_by_row(trigger: Any) -> None:
    kind, fields = aggregate_node(TUMBLING, trigger, "accumulating", None)
    assert kind is WindowProcess
    assert fields == {"trigger": trigger, "evictor": None}


@pytest.mark.parametrize(
    ("window", "trigger", "late", "kind"),
    [
        (TUMBLING, None, True, WindowAggregate),
        (TUMBLING, EARLY, True, WindowAggregate),
        # A pane that several windows share cannot be emptied for one of them.
        (HOPPING, None, True, WindowProcess),
        (HOPPING, EARLY, False, WindowProcess),
        (GROWING, EARLY, False, WindowProcess),
        # What fires once discards nothing that anyone asks for again.
        (HOPPING, None, False, WindowAggregate),
        (GROWING, None, False, WindowAggregate),
    ],
)
def test_panes_discard_where_a_pane_is_a_window(
    window: Any, trigger: Any, late: bool, kind: type
) -> None:
    assert aggregate_node(window, trigger, "discarding", None, late=late)[0] is kind


def test_an_evictor_needs_rows() -> None:
    assert aggregate_node(TUMBLING, None, "accumulating", evictors.count(1))[0] is WindowProcess


def test_the_default_trigger_by_its_name_is_none_for_sessions_too() -> None:
    session = Session(SECOND)
    assert (
        aggregate_node(session, triggers.event_time(), "accumulating", None)[0] is SessionAggregate
    )
