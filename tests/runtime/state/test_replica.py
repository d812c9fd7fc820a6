"""Replicas in mapped files: shared by processes, never used when torn, foreign or unfinished."""

import errno
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState, TableSpec, ValueSpec
from headrace._runtime.state import replica as replica_module
from headrace._runtime.state.replica import MappedArrays, hold, open_replica, release, sweep
from headrace.errors import EngineError
from headrace.keys import hash_keys

SPEC = TableSpec(
    "totals",
    pa.schema([("user", pa.string())]),
    (ValueSpec("count", pa.int64(), 0), ValueSpec("note", pa.string())),
)
NOW = timedelta(0)


class CountingStore(MemoryChunkStore):
    """A store that remembers which chunks were read."""

    def chunk(self, number):
        self.__dict__.setdefault("read", []).append(number)
        return super().chunk(number)

    @property
    def reads(self):
        return self.__dict__.setdefault("read", [])


def replica(root, incarnation="one", operator="totals", shard=0, **options):
    return open_replica(root, incarnation, operator=operator, shard=shard, wait=NOW, **options)


def epoch(store, arrays, users, bucket=0, commit=True):
    state = ShardState([SPEC], store, arrays, range(128))
    state.open()
    if users:
        table = state.table("totals", bucket)
        keys = [pa.array(users)]
        slots, _ = table.upsert(hash_keys(keys), keys)
        table.values("count")[slots] += 1
        table.put("note", slots, pa.array([f"note of {user}" for user in users]))
    if commit:
        state.commit()
    found = contents(state)
    arrays.close()
    return found


def contents(state):
    found = {}
    for bucket in state.buckets("totals"):
        table = state.table("totals", bucket)
        slots = table.live()
        users = table.keys(slots)[0].to_pylist()
        counts, notes = table.get("count", slots).tolist(), table.get("note", slots).to_pylist()
        assert notes == [f"note of {user}" for user in users]
        found |= {(bucket, user): count for user, count in zip(users, counts, strict=True)}
    return found


@pytest.fixture
def root(tmp_path):
    return tmp_path / "replicas"


def in_another_process(root, store, users):
    """Run an epoch in a process of its own; what it found, the store after it, the chunks it read."""
    request = json.dumps([str(root), encoded(store), users])
    command = [sys.executable, __file__, "epoch"]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    found, stored, reads = json.loads(done.stdout)
    return {(bucket, user): count for bucket, user, count in found}, decoded(stored), reads


def encoded(store):
    chunks = {number: content.hex() for number, content in store.chunks.items()}
    return [chunks, store.manifest_bytes.hex()]


def decoded(stored):
    chunks = {int(number): bytes.fromhex(content) for number, content in stored[0].items()}
    return CountingStore(chunks, bytes.fromhex(stored[1]))


def test_another_process_continues_a_replica_without_reading_a_chunk(root):
    store = CountingStore()
    epoch(store, replica(root), ["ann", "bob"])
    found, store, reads = in_another_process(root, store, ["bob", "cem"])
    assert found == {(0, "ann"): 1, (0, "bob"): 2, (0, "cem"): 1}
    assert epoch(store, replica(root), ["cem"]) == found | {(0, "cem"): 2}
    assert reads == []
    assert store.reads == []


def test_growth_in_another_process_is_seen(root):
    store = CountingStore()
    many = [f"user {number}" for number in range(20_000)]
    epoch(store, replica(root), many[:9_000])
    _, store, _ = in_another_process(root, store, many)
    found = epoch(store, replica(root), many[:1])
    assert len(found) == 20_000
    assert found[0, many[0]] == 3
    assert store.reads == []


def test_an_epoch_that_did_not_commit_leaves_no_replica(root):
    store = CountingStore()
    epoch(store, replica(root), ["ann"])
    epoch(store, replica(root), ["ann", "bob"], commit=False)
    assert epoch(store, replica(root), []) == {(0, "ann"): 1}
    assert store.reads == [1]


def test_a_commit_that_the_store_lost_is_not_trusted(root):
    store = CountingStore()
    epoch(store, replica(root), ["ann"])
    lost = CountingStore(dict(store.chunks), store.manifest_bytes)
    epoch(lost, replica(root), ["ann"])
    assert epoch(store, replica(root), ["ann"]) == {(0, "ann"): 2}
    assert store.reads == [1]


def test_an_older_replica_reads_only_the_chunks_since(root):
    store = CountingStore()
    epoch(store, replica(root), ["ann"])
    epoch(store, replica(root), ["bob"])
    epoch(store, MemoryArrays(), ["cem"], bucket=1)
    store.reads.clear()
    assert epoch(store, replica(root), []) == {(0, "ann"): 1, (0, "bob"): 1, (1, "cem"): 1}
    assert store.reads == [3]


@pytest.mark.parametrize(
    "damage", [lambda c: c[:-5], lambda c: c[:40] + b"9" + c[41:], lambda _: b""]
)
def test_a_torn_header_means_rebuild(root, damage):
    store = CountingStore()
    epoch(store, replica(root), ["ann"])
    header = next(root.glob("*/*/header"))
    header.write_bytes(damage(header.read_bytes()))
    assert epoch(store, replica(root), []) == {(0, "ann"): 1}
    assert store.reads == [1]


def test_the_replica_of_another_boot_is_not_used(root, monkeypatch):
    store = CountingStore()
    epoch(store, replica(root), ["ann"])
    monkeypatch.setattr(replica_module, "_boot_id", lambda: "another")
    assert replica(root).load_header() is None


def test_identities_do_not_share_a_replica(root):
    arrays = replica(root, operator="a/b", shard=1)
    arrays.save_header({"stamp": "x", "tables": {}})
    arrays.close()
    assert replica(root, operator="a/b", shard=1).load_header() == {"stamp": "x", "tables": {}}
    assert replica(root, operator="a/b", shard=2).load_header() is None
    assert replica(root, operator="a-b", shard=1).load_header() is None
    assert replica(root, "two", operator="a/b", shard=1).load_header() is None


def test_a_taken_lock_gives_a_private_replica(root):
    first = replica(root)
    second = replica(root)
    assert isinstance(first, MappedArrays)
    assert isinstance(second, MemoryArrays)
    first.close()
    third = replica(root)
    assert isinstance(third, MappedArrays)
    third.close()


def full_disk(monkeypatch, full):
    allocate = os.posix_fallocate

    def refuse(descriptor, offset, size):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if any(path.is_relative_to(directory) for directory in full):
            raise OSError(errno.ENOSPC, "No space left on device")
        allocate(descriptor, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", refuse)


def test_a_full_memory_disk_moves_new_buffers_to_the_fallback(root, tmp_path, monkeypatch):
    store, fallback = CountingStore(), tmp_path / "fallback"
    epoch(store, replica(root, fallback=fallback), ["ann"])
    full_disk(monkeypatch, [root])
    many = [f"user {number}" for number in range(9_000)]
    epoch(store, replica(root, fallback=fallback), many)
    assert len(epoch(store, replica(root, fallback=fallback), ["ann"])) == 9_001
    assert store.reads == []
    assert list(fallback.glob("*/*/f-*"))


def test_no_room_anywhere_is_said_in_a_sentence(root, tmp_path, monkeypatch):
    full_disk(monkeypatch, [tmp_path])
    with pytest.raises(EngineError, match=r"no room for .* bytes of state in"):
        epoch(CountingStore(), replica(root, fallback=tmp_path / "fallback"), ["ann"])


def test_a_full_memory_disk_is_no_place_for_a_header_either(root, tmp_path, monkeypatch):
    store, fallback = CountingStore(), tmp_path / "fallback"
    epoch(store, replica(root, fallback=fallback), ["ann"])
    full_disk(monkeypatch, [root])
    write = Path.write_bytes

    def refuse(path, content):
        if path.is_relative_to(root):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", refuse)
    for name in ("bob", "cid"):
        epoch(store, replica(root, fallback=fallback), [name])
    assert len(epoch(store, replica(root, fallback=fallback), ["ann"])) == 3


def test_a_buffer_that_somebody_deleted_costs_one_try(root):
    store = CountingStore()
    epoch(store, replica(root), ["ann", "bob"])
    replica_module._mapped.clear()
    for path in root.glob("*/*/m-*"):
        path.unlink()
    arrays = replica(root)
    state = ShardState([SPEC], store, arrays, range(128))
    state.open()
    with pytest.raises(EngineError, match="was deleted by somebody"):
        state.table("totals", 0)
    arrays.close()
    assert len(epoch(store, replica(root), ["ann"])) == 2


def test_a_fork_of_user_code_does_not_keep_the_lock(root):
    arrays = replica(root)
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        arrays.close()
        again = replica(root)
        assert isinstance(again, MappedArrays)
        again.close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_dropped_buckets_give_their_files_back(root):
    store = CountingStore()
    epoch(store, replica(root), ["ann"])
    before = len(list(root.glob("*/*/m-*")))
    arrays = replica(root)
    state = ShardState([SPEC], store, arrays, range(128))
    state.open()
    state.drop_before("totals", 5)
    state.commit()
    arrays.close()
    assert before > 0
    assert list(root.glob("*/*/m-*")) == []


def test_sweep_removes_what_nobody_holds(root):
    command = [sys.executable, __file__, "hold", str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        for name in ("abandoned", "own"):
            (root / name / "op-0").mkdir(parents=True)
        assert sweep(root, keep="own") == ["abandoned"]
        assert sorted(path.name for path in root.iterdir()) == ["held", "own"]
        holder.communicate()
    assert sweep(root) == ["held", "own"]
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("call", ["open", "flock"])
def test_two_sweeps_at_once_are_harmless(root, monkeypatch, call):
    module = {"open": os, "flock": replica_module.fcntl}[call]
    plain = getattr(module, call)
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)

    def overtaken(*arguments):
        monkeypatch.undo()
        assert sweep(root) == ["a", "b"]
        return plain(*arguments)

    monkeypatch.setattr(module, call, overtaken)
    assert sweep(root) == []
    assert list(root.iterdir()) == []


def test_a_sweep_that_was_overtaken_leaves_a_new_holder_alone(root, monkeypatch):
    plain = replica_module.fcntl.flock
    (root / "a").mkdir(parents=True, mode=0o700)
    root.chmod(0o700)

    def overtaken(*arguments):
        monkeypatch.undo()
        sweep(root)
        hold(root, "a")
        return plain(*arguments)

    monkeypatch.setattr(replica_module.fcntl, "flock", overtaken)
    assert sweep(root) == []
    assert (root / "a" / "held").exists()
    release(root, "a", remove=True)


def test_a_released_job_may_be_swept(root):
    hold(root, "one")
    assert sweep(root) == []
    release(root, "one", remove=False)
    assert sweep(root) == ["one"]
    release(root, "one", remove=False)


def test_a_finished_job_takes_its_replicas_along_though_workers_hold_them(root):
    command = [sys.executable, __file__, "hold", str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout.readline() == b"held\n"
        store = CountingStore()
        epoch(store, replica(root, "held"), ["ann"])
        epoch(CountingStore(), replica(root, "other"), ["ann"])
        release(root, "held", remove=True)
        assert [path.name for path in root.iterdir()] == ["other"]
        assert epoch(store, replica(root, "held"), []) == {(0, "ann"): 1}
        worker.communicate()
    for name in ("held", "other", "never held"):
        release(root, name, remove=True)
    assert list(root.iterdir()) == []


def test_a_root_open_to_others_is_refused(root):
    root.mkdir(mode=0o755)
    with pytest.raises(EngineError, match="mode 0700"):
        replica(root)


def test_buffers_of_deleted_files_are_let_go(root):
    arrays = replica(root)
    name, buffer = arrays.allocate(2**20, [(0, 2**20)])
    buffer[:] = np.uint8(1)
    assert arrays.open(name) is buffer
    next(root.glob(f"*/*/{name}")).unlink()
    arrays.close()
    arrays = replica(root)
    with pytest.raises(EngineError, match="was deleted by somebody"):
        arrays.open(name)
    arrays.close()


def play_other_process(role, *arguments):
    """What this file does when a test runs it as another process."""
    if role == "hold":
        hold(Path(arguments[0]), "held")
        sys.stdout.write("held\n")
        sys.stdout.flush()
        sys.stdin.read()
        return
    root, stored, users = json.load(sys.stdin)
    store = decoded(stored)
    found = epoch(store, replica(Path(root)), users)
    rows = [[bucket, user, count] for (bucket, user), count in found.items()]
    json.dump([rows, encoded(store), store.reads], sys.stdout)


if __name__ == "__main__":
    play_other_process(*sys.argv[1:])
