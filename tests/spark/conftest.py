"""Jobs on embedded Spark. One session serves the whole run; a job never ends it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace._commit.paths import Layout
from headrace._epochs.offset import Offset
from headrace.testing import LocalEpoch


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


def logged_epochs(checkpoint: Path) -> list[LocalEpoch]:
    """The epochs as Spark logged them: what an oracle must be given."""
    import json

    epochs = []
    for path in sorted(Layout(checkpoint).offsets.iterdir(), key=lambda p: p.name):
        if path.name.isdigit():
            offset = Offset.from_json(json.loads(path.read_text().splitlines()[2]))
            epochs.append(
                LocalEpoch(
                    offset.epoch,
                    offset.ranges,
                    offset.before,
                    offset.watermarks,
                    offset.clock_us,
                    offset.clock_before_us,
                )
            )
    return sorted(epochs, key=lambda epoch: epoch.number)
