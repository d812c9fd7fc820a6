"""A call that takes longer than it may is ended, and nothing else is."""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace._runtime import watchdog
from headrace._runtime.usercode import TookTooLong
from headrace._runtime.watchdog import IDLE, watching

LIMIT_US = 60_000
#: Long enough that a test which waits for it has failed.
FOR_EVER = 60.0


def sleep() -> None:
    time.sleep(FOR_EVER)


def spin() -> None:
    end = time.monotonic() + FOR_EVER
    while time.monotonic() < end:
        pass


def receive() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.settimeout(FOR_EVER)
        left.recv(1)


def acquire() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=FOR_EVER)


def watched(call: Callable[[], None]) -> None:
    with watching(LIMIT_US) as watch:
        watch.call = 0
        call()


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < FOR_EVER / 4


@pytest.mark.parametrize("hang", [sleep, spin, receive, acquire])
def test_a_call_that_hangs_is_interrupted_wherever_it_waits(hang: Callable[[], None]) -> None:
    with at_once(), pytest.raises(TookTooLong, match=r"limit of 0:00:00\.06"):
        watched(hang)


def test_handlers_of_users_do_not_keep_a_call_running() -> None:
    def stubborn() -> None:
        for _ in range(1_000):
            with contextlib.suppress(Exception):
                time.sleep(FOR_EVER / 1_000)

    with at_once(), pytest.raises(TookTooLong):
        watched(stubborn)


def test_code_that_catches_everything_is_interrupted_again() -> None:
    caught = []

    def careless() -> None:
        try:
            time.sleep(FOR_EVER)
        except BaseException as error:  # noqa: BLE001 - what a bare except would do
            caught.append(error)
        time.sleep(FOR_EVER)

    with at_once(), pytest.raises(TookTooLong):
        watched(careless)
    assert len(caught) == 1


def test_many_short_calls_may_take_longer_together() -> None:
    done: list[int] = []
    with watching(LIMIT_US, done.__len__):
        for number in range(30):
            time.sleep(LIMIT_US / 5e6)
            done.append(number)
    with watching(LIMIT_US) as watch:
        for number in range(30):
            watch.call = number
            time.sleep(LIMIT_US / 5e6)
        assert watch.expired == IDLE


def test_between_calls_nothing_is_interrupted() -> None:
    with watching(LIMIT_US) as watch:
        watch.call = IDLE
        time.sleep(LIMIT_US * 4 / 1e6)
    time.sleep(LIMIT_US * 2 / 1e6)


def test_without_a_limit_there_is_no_thread_and_no_handler() -> None:
    before = signal.getsignal(watchdog._SIGNAL)
    with watching(None) as watch:
        watch.call = 7
        assert signal.getsignal(watchdog._SIGNAL) == before


def test_the_signal_is_whose_it_was_afterwards() -> None:
    def mine(*_: Any) -> None:
        """The handler of someone else."""

    before = signal.signal(watchdog._SIGNAL, mine)
    try:
        with pytest.raises(TookTooLong):
            watched(sleep)
        assert signal.getsignal(watchdog._SIGNAL) is mine
    finally:
        signal.signal(watchdog._SIGNAL, before or signal.SIG_IGN)


def test_in_another_thread_a_call_is_interrupted_too() -> None:
    found: list[BaseException] = []

    def work() -> None:
        try:
            with watching(LIMIT_US) as watch:
                watch.call = 0
                spin()
        except TookTooLong as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(FOR_EVER / 4)
    assert not thread.is_alive()
    assert "took longer than its limit" in str(found[0])


def test_a_forked_process_has_a_watchdog_of_its_own() -> None:
    with watching(LIMIT_US):
        pass
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with watching(LIMIT_US) as watch:
                watch.call = 0
                sleep()
        except TookTooLong:
            code = 0
        finally:
            os._exit(code)
    with at_once():
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_a_process_that_was_stopped_for_a_while_blames_no_call() -> None:
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(TookTooLong), watching(1_000_000) as watch:
            watch.call = 0
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0.2)
            code = 0
        os._exit(code)
    os.waitpid(child, os.WUNTRACED)
    time.sleep(1.5)
    os.kill(child, signal.SIGCONT)
    _, status = os.waitpid(child, 0)
    assert status == 0
