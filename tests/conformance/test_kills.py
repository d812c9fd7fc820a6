"""A signal before a line of a sink's code comes before that line, whichever thread publishes."""

import mmap
import signal
import threading
import time
from functools import partial

from headrace.testing.conformance.kills import Lines
from headrace.testing.conformance.travel import Forked


class Sink:
    def publish(self, seen: mmap.mmap) -> None:
        seen[0] = 1
        seen[1] = 1


def publish_in_a_thread(seen: mmap.mmap) -> None:
    sink, lines = Sink(), Lines(2, signal.SIGSTOP)
    lines.add(sink)
    thread = threading.Thread(target=lines.within, args=[partial(sink.publish, seen)])
    thread.start()
    thread.join()


def test_a_thread_that_is_stopped_before_a_line_has_not_run_it() -> None:
    for _ in range(20):
        seen = mmap.mmap(-1, 2)
        child = Forked(lambda _, seen=seen: publish_in_a_thread(seen))
        try:
            while child.state() == "running":
                time.sleep(0.001)
            assert seen[:] == b"\1\0"
            child.wake()
            assert child.wait(10.0)
            assert seen[:] == b"\1\1"
        finally:
            child.end()
