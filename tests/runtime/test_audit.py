"""The reports of an epoch's tasks, added up."""

import json

from headrace._runtime.audit import observed
from headrace._runtime.report import TaskReport


def report(task: int, **outlooks: tuple[int | None, int, int | None]) -> TaskReport:
    made = TaskReport(1, task, 3, f"attempt-{task}", outlooks=outlooks)
    return TaskReport.from_json(json.loads(json.dumps(made.to_json())))


def test_the_outlook_of_a_step_is_the_nearest_over_its_shards() -> None:
    shards = [
        report(0, w=(50, 3, None), v=(None, 0, 90)),
        report(1, w=(40, 2, 700), v=(None, 0, 80)),
        report(2, w=(40, 5, 600), v=(None, 0, None)),
    ]
    assert observed(shards).outlooks == {"w": [40, 7, 600], "v": [None, 0, 80]}


def test_a_step_that_waits_for_nothing_says_so() -> None:
    assert observed([report(0, w=(None, 0, None))]).outlooks == {"w": [None, 0, None]}
    assert observed([]).outlooks == {}


def test_extremes_and_generators_of_partitions_come_together() -> None:
    one, two = report(0), report(1)
    one.observe("s", "0", 5, 9)
    two.observe("s", "0", 3, 7)
    one.generators["s"] = {"0": {"n": 1}}
    two.generators["s"] = {"1": {"n": 2}}
    seen = observed([one, two])
    assert (seen.minima, seen.maxima) == ({"s": {"0": 3}}, {"s": {"0": 9}})
    assert seen.generators == {"s": {"0": {"n": 1}, "1": {"n": 2}}}


def test_tasks_of_a_stage_work_side_by_side_and_stages_behind_each_other() -> None:
    reports = [
        TaskReport(stage, task, 2, "a", elapsed_us=elapsed_us)
        for stage, task, elapsed_us in [(0, 0, 70), (0, 1, 90), (1, 0, 40), (1, 1, 10)]
    ]
    assert observed(reports).at_work_us == 130
