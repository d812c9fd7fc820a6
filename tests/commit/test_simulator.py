"""Seeds of kills against the real commit code: lost = doubled = 0. The suite runs 300, `scripts/long simulator` 10,000."""

import importlib.util
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from headrace._commit import publication, recovery
from headrace._commit.protocol import Action, Publish, RecoveryFacts, decide
from headrace.endpoints import Receipt
from headrace.testing.memory_disk import memory_disk

_spec = importlib.util.spec_from_file_location(
    "simulator", Path(__file__).with_name("simulator.py")
)
assert _spec is not None
assert _spec.loader is not None
simulator = importlib.util.module_from_spec(_spec)
sys.modules["simulator"] = simulator
_spec.loader.exec_module(simulator)

SEEDS = int(os.environ.get("HEADRACE_SIMULATOR_SEEDS", "300"))


@contextmanager
def fresh_directory() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="headrace-sim-", dir=memory_disk()))
    try:
        yield root / "checkpoint"
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run_seed(seed: int) -> list[str]:
    """Up to five kills at random steps, then one life to the end."""
    rng = random.Random(seed)
    with fresh_directory() as root:
        world = simulator.World(root, seed)
        for _ in range(rng.randint(1, 5)):
            if world.live(kill_at=rng.randint(1, 160)):
                break
        else:
            assert world.live()
        return [f"seed {seed}: {fault}" for fault in world.faults_found()]


def steps_of_a_whole_life(seed: int) -> int:
    with fresh_directory() as root:
        world = simulator.World(root, seed)
        assert world.live()
        assert world.faults_found() == []
        return int(world.clockwork.taken)


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_nothing_is_lost_or_doubled_whenever_it_is_killed(first: int) -> None:
    assert [fault for seed in range(first, first + 100) for fault in run_seed(seed)] == []


def test_a_kill_at_every_single_step_is_survived() -> None:
    seed = 11
    for kill_at in range(1, steps_of_a_whole_life(seed) + 1):
        with fresh_directory() as root:
            world = simulator.World(root, seed)
            assert not world.live(kill_at=kill_at)
            assert world.live()
            assert world.faults_found() == [], f"killed at step {kill_at}"


def test_a_kill_at_every_step_of_a_recovery_is_survived() -> None:
    seed, first_kill = 5, 170
    for kill_at in range(1, 80):
        with fresh_directory() as root:
            world = simulator.World(root, seed)
            assert not world.live(kill_at=first_kill)
            world.live(kill_at=kill_at)
            assert world.live()
            assert world.faults_found() == [], f"killed at step {kill_at} of the recovery"


def test_running_a_finished_job_again_changes_nothing() -> None:
    with fresh_directory() as root:
        world = simulator.World(root, 3)
        assert world.live()
        before = dict(world.outside.visible)
        assert world.live()
        assert world.outside.visible == before


def faults_of(seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        try:
            found += run_seed(seed)
        except Exception as error:  # noqa: BLE001 - a planted bug may show in any way
            found.append(f"seed {seed}: {error!r}")
    return found


def test_the_simulator_sees_a_recovery_that_forgets_to_publish() -> None:
    def forgetful(facts: RecoveryFacts) -> list[Action]:
        return [action for action in decide(facts) if not isinstance(action, Publish)]

    with patch.object(recovery, "decide", forgetful):
        assert any("lost" in fault for fault in faults_of(range(40)))


def test_the_simulator_sees_rows_published_before_they_are_durable() -> None:
    write = simulator.write_manifest

    def hasty(layout: object, manifest: publication.Manifest) -> None:
        write(layout, manifest)
        for receipt in manifest.receipts_of("files"):
            show_at_once(receipt, manifest.epoch)

    def show_at_once(receipt: Receipt, epoch: int) -> None:
        world = worlds[-1]
        rows = world.outside.staged.pop(("files", epoch, receipt.path))
        world.outside.visible.setdefault("files", {})[f"{epoch}-{receipt.path}"] = rows

    worlds = []
    make = simulator.World

    def remembered(root: Path, seed: int) -> object:
        worlds.append(make(root, seed))
        return worlds[-1]

    with (
        patch.object(simulator, "write_manifest", hasty),
        patch.object(simulator, "World", remembered),
    ):
        found = faults_of(range(40))
    assert any("doubled" in fault for fault in found)
    assert any("another attempt" in fault for fault in found)


def test_the_simulator_sees_progress_noted_before_it_is_made() -> None:
    show = publication.Publication._show

    def early(self: publication.Publication, manifest: publication.Manifest, sink: str) -> None:
        self._shown[sink] = manifest.epoch
        self.note(manifest.epoch)
        show(self, manifest, sink)

    with patch.object(publication.Publication, "_show", early):
        assert any("lost" in fault for fault in faults_of(range(40)))
