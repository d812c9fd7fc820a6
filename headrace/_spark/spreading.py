"""Has work beside the epochs done by Spark's workers: large publications, one task a part.

The tasks run in a scheduler pool of low weight (`pools.xml`), so that they take what epochs leave. In a session that a
user brought they stand in line as its own scheduler says. Such work is never part of an epoch's job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace._spark.session import EmbeddedSpark
from headrace.endpoints import Spread

__all__ = ["POOL", "spread_on"]

POOL = "headrace-publish"


def spread_on(spark: EmbeddedSpark) -> Spread:
    """Calls on the workers of this session. Errors of ours come back as they were raised."""
    context = spark.session.sparkContext

    def spread(function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        context.setLocalProperty("spark.scheduler.pool", POOL)
        try:
            rows = context.parallelize(list(arguments), len(arguments))
            return rows.map(function).collect()
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]

    return spread
