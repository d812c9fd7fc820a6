"""Blocks: arrays that grow in their place as long as there is room, and move when it is used up."""

import errno
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._runtime.state.arrays import Arrays, Block, MemoryArrays
from headrace._runtime.state.replica import MappedArrays, open_replica

DTYPES = {"a": np.dtype(np.int64), "b": np.dtype(np.uint8)}


@pytest.fixture(params=["memory", "files"])
def arrays(request: pytest.FixtureRequest, tmp_path: Path) -> Arrays:
    if request.param == "memory":
        return MemoryArrays()
    return open_replica(tmp_path / "replicas", "one", operator="o", shard=0)


def small(arrays: Arrays) -> Block:
    return Block.create(arrays, DTYPES, {"a": 4, "b": 4})


def append(block: Block, field: str, values: Any) -> None:
    start = block.length(field)
    end = start + len(values)
    block.secure({field: end})
    block[field][start:end] = values
    block.set_length(field, end)


def test_appended_values_survive_every_move(arrays: Arrays) -> None:
    block, names = small(arrays), set()
    for number in range(300):
        append(block, "a", np.full(100, number))
        append(block, "b", np.full(7, number % 251, np.uint8))
        names.add(block.name)
    assert block["a"][:30_000].tolist() == np.repeat(np.arange(300), 100).tolist()
    assert block["b"][:2_100].tolist() == np.repeat(np.arange(300) % 251, 7).tolist()
    assert (block.length("a"), block.length("b")) == (30_000, 2_100)
    assert 1 < len(names) < 10


def test_another_process_sees_what_is_secured(arrays: Arrays) -> None:
    block = small(arrays)
    append(block, "a", np.arange(5_000))
    again = Block(arrays, DTYPES, name=block.name)
    append(again, "a", np.arange(5_000))
    assert again.length("a") == 10_000
    assert again["a"][9_999] == 4_999


def test_room_that_is_not_used_takes_no_disk(tmp_path: Path) -> None:
    arrays = open_replica(tmp_path / "replicas", "one", operator="o", shard=0)
    block = small(arrays)
    append(block, "a", np.arange(100_000))
    (file,) = (tmp_path / "replicas").glob("*/*/m-*")
    status = file.stat()
    assert status.st_size > 10 * 800_000
    assert status.st_blocks * 512 < 2 * 800_000
    assert block["a"][99_999] == 99_999


def test_room_without_disk_behind_it_moves_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    arrays = open_replica(memory, "one", operator="o", shard=0, fallback=disk)
    assert isinstance(arrays, MappedArrays)
    block = small(arrays)
    append(block, "a", np.arange(1_000))
    allocate = os.posix_fallocate

    def full(descriptor: int, start: int, size: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(memory):
            raise OSError(errno.ENOSPC, "No space left on device")
        allocate(descriptor, start, size)

    monkeypatch.setattr(os, "posix_fallocate", full)
    append(block, "a", np.arange(2_000))
    assert block.name.startswith("f-")
    assert block["a"][:3_000].tolist() == [*range(1_000), *range(2_000)]
    assert not list(memory.glob("*/*/m-*"))


def test_a_block_that_grows_as_a_whole_keeps_what_is_not_blank(arrays: Arrays) -> None:
    block = small(arrays)
    block["a"][:] = [1, 2, 3, 4]
    block["b"][:] = 9
    block.counters[3] = 5
    block.grow({"a": 8, "b": 8}, blank=frozenset({"b"}))
    assert block["a"].tolist() == [1, 2, 3, 4, 0, 0, 0, 0]
    assert block["b"].tolist() == [0] * 8
    assert block.counters[3] == 5


def test_addresses_that_are_limited_are_used_sparingly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = open_replica(tmp_path / "replicas", "one", operator="o", shard=0)
    block, real = small(arrays), mmap.mmap

    def limited(descriptor: int, size: int) -> mmap.mmap:
        if size > 2**20:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return real(descriptor, size)

    monkeypatch.setattr("headrace._runtime.state.replica.mmap.mmap", limited)
    append(block, "a", np.arange(60_000))
    assert block["a"][59_999] == 59_999
    (file,) = (tmp_path / "replicas").glob("*/*/m-*")
    assert file.stat().st_size < 2**20
