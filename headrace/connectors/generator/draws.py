"""Random numbers that are a pure function of (seed, stream, counter).

There is no generator to advance, so any range of rows can be made at any time, in any process, in any
order, and is always the same. The mixer is splitmix64's. `stream` keeps columns independent of each
other. Every function takes and gives whole arrays.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Draws", "Int64s"]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_WORD = 2**64


@dataclass(frozen=True, slots=True)
class Draws:
    """All the random numbers of one seed."""

    seed: int

    def words(self, stream: int, counters: Int64s) -> UInt64s:
        """64 random bits for each counter."""
        salt = np.uint64((self.seed * 0x2545F4914F6CDD1D + stream * 0xD1342543DE82EF95 + 1) % _WORD)
        mixed = counters.astype(np.uint64) * _STEP
        mixed += _mix(np.array([salt], dtype=np.uint64))[0]
        return _mix(mixed)

    def fractions(self, stream: int, counters: Int64s) -> npt.NDArray[np.float64]:
        """Uniform in [0, 1)."""
        bits = (self.words(stream, counters) >> np.uint64(11)).astype(np.float64)
        return bits * np.float64(2.0**-53)

    def below(self, stream: int, counters: Int64s, limit: int | Int64s) -> Int64s:
        """Uniform whole numbers in [0, limit); `limit` stays far below 2**32."""
        high = self.words(stream, counters) >> np.uint64(32)
        limits = np.asarray(limit, dtype=np.uint64)
        return ((high * limits) >> np.uint64(32)).astype(np.int64)

    def chance(self, stream: int, counters: Int64s, probability: float) -> npt.NDArray[np.bool_]:
        """True with this probability."""
        if probability <= 0.0:
            return np.zeros(len(counters), dtype=np.bool_)
        return self.fractions(stream, counters) < probability


def _mix(words: UInt64s) -> UInt64s:
    """Scramble in place: every bit of the input changes about half of the output's bits."""
    words ^= words >> np.uint64(30)
    words *= _FIRST
    words ^= words >> np.uint64(27)
    words *= _SECOND
    words ^= words >> np.uint64(31)
    return words
