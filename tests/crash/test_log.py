"""Kafka to Kafka, into PostgreSQL and into files, exactly once: killed at points of the protocol, at random, and without its servers.

One job writes every row to all three. The checker reads the outputs alone, as any client would. The suite kills at four points and
at random twice, `scripts/long kills` at every point and at random twenty times.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace._commit.checkpoint import durable_epoch
from headrace._commit.paths import Layout
from headrace._commit.published import read_progress
from headrace._services.kafka import Kafka
from headrace._services.postgres import Postgres
from tests.crash import log_job
from tests.crash.killing import (
    POINTS,
    VICTIMS,
    WHOLE_MATRIX,
    end_group,
    finish,
    jvm_of,
    launch,
    run,
    wait_until,
)
from tests.crash.log_checker import (
    CLEAN,
    Verdict,
    fill,
    in_files,
    in_log,
    in_table,
    judge,
    make_table,
)

pytestmark = [pytest.mark.crash, pytest.mark.services]

JOB = Path(log_job.__file__)
SEED = int(os.environ.get("HEADRACE_KILL_SEED", "20250101"))
RANDOM_KILLS = 20 if WHOLE_MATRIX else 2
EPOCHS = 14 if WHOLE_MATRIX else 8
#: In the first epoch, around the publication, and in the final epoch.
FAULTS = ["K6:0:group", "K8:2:driver", "K10:4:jvm"]
if WHOLE_MATRIX:
    FAULTS = [f"{point}:{at}:{VICTIMS[at % 3]}" for at, point in enumerate(POINTS)]
FAULTS.append(f"K7:{EPOCHS}:group")
#: How long the servers stay away while the job runs. In the whole matrix that is longer than a lane waits for an answer, so
#: that epochs are tried again.
AWAY_S = {"postgres": 2.0, "kafka": 10.0}
if WHOLE_MATRIX:
    AWAY_S = dict.fromkeys(AWAY_S, 125.0)
#: Durable epochs that are not published yet, before the intake stops.
MAY_WAIT = 3
#: A read gives up well before that, all four tries that Spark gives it. Epochs are so large, and so little is read ahead,
#: that one of those which may wait must ask the broker.
IMPATIENT = {"LOG_READ_TIMEOUT": "1", "LOG_NOTHING_AHEAD": "yes", "LOG_EPOCH_ROWS": "3000"}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    broker = Kafka(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.remove()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    server = Postgres(tmp_path_factory.mktemp("postgres"))
    server.start()
    yield server
    server.remove()


class Outputs:
    """The names of one test's topics, table and folder, and what is in them."""

    def __init__(self, kafka: Kafka, postgres: Postgres, root: Path, rows: int) -> None:
        self.kafka, self.postgres, self.rows = kafka, postgres, rows
        self.folder = root / "out"
        name = uuid.uuid4().hex[:8]
        self.environment = {
            "LOG_KAFKA": kafka.address,
            "LOG_POSTGRES": postgres.address,
            "LOG_IN": f"in-{name}",
            "LOG_OUT": f"out-{name}",
            "LOG_TABLE": f"out_{name}",
            "LOG_FILES": str(self.folder),
        }
        fill(kafka.address, f"in-{name}", f"out-{name}", rows)
        make_table(postgres.address, f"out_{name}")

    def verdicts(self) -> dict[str, Verdict]:
        """Of the log, the table and the files."""
        found = {
            "log": in_log(self.kafka.address, self.environment["LOG_OUT"]),
            "table": in_table(self.postgres.address, self.environment["LOG_TABLE"]),
            "files": in_files(self.folder),
        }
        return {output: judge(rows, self.rows) for output, rows in found.items()}


ALL_CLEAN = dict.fromkeys(("log", "table", "files"), CLEAN)


def test_kills_lose_and_double_nothing_and_without_its_checkpoint_everything_arrives_again(
    tmp_path: Path, kafka: Kafka, postgres: Postgres
) -> None:
    outputs = Outputs(kafka, postgres, tmp_path, EPOCHS * log_job.ROWS_PER_EPOCH)
    for fault in FAULTS:
        killed = run(tmp_path, script=JOB, **outputs.environment, HEADRACE_FAULT=fault)
        assert killed.code != 0, f"{fault} was not reached: {killed.said}"
    ended = run(tmp_path, script=JOB, **outputs.environment)
    assert ended.code == 0, ended.said
    assert outputs.verdicts() == ALL_CLEAN
    shown = read_progress(Layout(tmp_path / "state")).shown
    assert set(shown.values()) == {durable_epoch(Layout(tmp_path / "state"))}
    assert set(shown) == set(ALL_CLEAN)
    shutil.rmtree(tmp_path / "state")
    again = run(tmp_path, script=JOB, **outputs.environment)
    assert again.code == 0, again.said
    for verdict in outputs.verdicts().values():
        assert (verdict.lost, verdict.doubled, verdict.wrong) == (0, outputs.rows, 0)


def test_random_kills_of_the_job_and_its_servers_lose_and_double_nothing(
    tmp_path: Path, kafka: Kafka, postgres: Postgres
) -> None:
    outputs = Outputs(kafka, postgres, tmp_path, 3_000 * RANDOM_KILLS)
    draw, layout = random.Random(SEED), Layout(tmp_path / "state")
    for number in range(RANDOM_KILLS):
        before = durable_epoch(layout)
        process = launch(tmp_path, script=JOB, **outputs.environment)
        if number % 2:
            assert wait_until(lambda: durable_epoch(layout) > before)  # noqa: B023 - called here
        time.sleep(draw.uniform(0.0, 1.5) if number % 2 else draw.uniform(1.0, 7.0))
        pid = jvm_of(process) if draw.random() < 0.3 else None
        if pid is None:
            end_group(process)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if number % 7 == 0:
            kafka.kill()
            kafka.start()
        if number % 7 == 1:
            postgres.kill()
            postgres.start()
        finish(process)
    assert durable_epoch(layout) < outputs.rows // log_job.ROWS_PER_EPOCH, "done before the end"
    faster = {**outputs.environment, "LOG_EPOCH_ROWS": "5000"}
    ended = run(tmp_path, script=JOB, **faster)
    assert ended.code == 0, ended.said
    assert outputs.verdicts() == ALL_CLEAN, f"seed {SEED}"


def waiting(layout: Layout) -> int:
    """How many durable epochs are not published by all sinks."""
    shown = min(read_progress(layout).shown.values())
    return durable_epoch(layout) - shown


def test_servers_that_are_away_stop_the_intake_and_nothing_else(
    tmp_path: Path, kafka: Kafka, postgres: Postgres
) -> None:
    outputs = Outputs(kafka, postgres, tmp_path, 40_000)
    more = {"LOG_RESTART": "on", "LOG_UNPUBLISHED": str(MAY_WAIT), **IMPATIENT}
    process = launch(tmp_path, script=JOB, **outputs.environment, **more)
    layout = Layout(tmp_path / "state")
    servers: tuple[Kafka | Postgres, ...] = (postgres, kafka)
    try:
        for server in servers:
            before = durable_epoch(layout)
            assert wait_until(lambda: durable_epoch(layout) >= before + 2)  # noqa: B023 - called here
            server.kill()
            if server is postgres:
                assert wait_until(lambda: waiting(layout) == MAY_WAIT)
            time.sleep(AWAY_S[server.name])
            assert waiting(layout) <= MAY_WAIT, "more epochs wait than may"
            assert process.poll() is None, "the job ended"
            server.start()
    finally:
        for server in servers:
            if not server.running:
                server.start()
        ended = finish(process)
    assert ended.code == 0, ended.said
    assert re.search(r"restarting in .* after: .*nothing came for 1 s", ended.said), ended.said
    assert outputs.verdicts() == ALL_CLEAN
