"""Many messages as one run of bytes with the place of each, for work that is done on all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SLACK", "Packed", "packed"]

#: So many bytes behind the last message may be looked at by code that checks for its end later.
SLACK = 16


@dataclass(frozen=True, slots=True)
class Packed:
    """Messages `octets[starts[i]:ends[i]]`; `places` says which ones of the batch they are."""

    octets: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Packed":
        """Some of the messages."""
        return Packed(self.octets, self.starts[chosen], self.ends[chosen], self.places[chosen])

    def behind(self, headers: int) -> "Packed":
        """The messages without their first bytes."""
        return Packed(self.octets, self.starts + headers, self.ends, self.places)

    def messages(self) -> list[bytes]:
        """The bytes of each."""
        content = self.octets.tobytes()
        bounds = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [content[start:end] for start, end in bounds]


def packed(messages: Sequence[bytes | None]) -> Packed:
    """All messages that are not tombstones."""
    there = [message for message in messages if message is not None]
    octets = np.frombuffer(b"".join([*there, bytes(SLACK)]), dtype=np.uint8)
    ends = np.cumsum(np.fromiter(map(len, there), dtype=np.int64, count=len(there)))
    starts = np.concatenate([np.zeros(min(len(ends), 1), dtype=np.int64), ends[:-1]])
    if len(there) == len(messages):
        places = np.arange(len(there), dtype=np.int64)
    else:
        places = np.array([i for i, m in enumerate(messages) if m is not None], dtype=np.int64)
    return Packed(octets, starts, ends, places)
