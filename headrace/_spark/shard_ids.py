"""Shard numbers that Spark's hash sends to distinct partitions.

Spark places a grouping key on partition pmod(murmur3(key), n), and 0, 1, 2, ... collide. Tasks are
balanced only if every partition holds one shard, so shard i is known to Spark by the smallest integer that
lands on partition i.
"""

from __future__ import annotations

__all__ = ["shard_ids"]

_MASK = 0xFFFFFFFF
_SEED = 42


def shard_ids(shards: int) -> tuple[int, ...]:
    """For each shard the integer that stands for it in Spark's grouping key."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < shards:
        found.setdefault(_murmur3(candidate) % shards, candidate)
        candidate += 1
    return tuple(found[partition] for partition in range(shards))


def _murmur3(value: int) -> int:
    """Murmur3 (x86, 32 bit) of one int32, as Spark's `hash` computes it, as a signed number."""
    k = value * 0xCC9E2D51 & _MASK
    k = _rotate(k, 15) * 0x1B873593 & _MASK
    h = _rotate(_SEED ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
