"""What a job says of itself in one line."""

import pytest

from headrace._jobs.summary import Summary

COUNTS = {"in": {"late": 1}, "step": {"late": 1, "dead": 3}}


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ({"finished": True}, "finished behind epoch 4"),
        ({"finished": False}, "stopped behind epoch 4"),
        ({"finished": False, "is_running": True}, "running behind epoch 4"),
    ],
)
def test_it_says_how_the_job_is_and_which_counts_are_of_all_runs(said, end):
    line = str(Summary("job", 4, rows=1_000, seconds=2.04, counts=COUNTS, **said))
    assert line == f"job: {end}, 1,000 rows in 2.0 s; since the first run 2 late, 3 dead-lettered"


def test_a_job_that_had_finished_read_nothing():
    line = str(Summary("job", 4, finished=True, rows=0, seconds=0.1, was_finished=True))
    assert line == "job: finished in an earlier run, nothing was read"
