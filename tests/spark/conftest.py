"""Jobs on embedded Spark. One session serves the whole run; a job never ends it."""

from pathlib import Path

from headrace._commit.paths import Layout
from headrace._epochs.offset import Offset
from headrace.testing import LocalEpoch


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
