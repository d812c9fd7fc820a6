"""How a plan is to be run: what the user said to `Environment`, checked, for whoever runs it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.config import Epochs, Restart

__all__ = ["RunSettings"]


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of one run."""

    checkpoint: Path
    #: None: what the checkpoint says, and the cores of the machine at the first start.
    shards: int | None
    epochs: Epochs
    restart: Restart
    #: A Spark master; None: the cores of this machine.
    master: str | None
    #: A Spark session that the user brings.
    session: Any
    verbose: bool
