"""What fails in a user's code becomes one error that says where."""

import numpy as np
import pytest

from headrace._runtime.rows import Origin
from headrace._runtime.usercode import calling, place
from headrace.errors import InputError, UserCodeError

ORIGIN = Origin("bids", "p1", np.array([40, 41, 42]))


def users_function() -> None:
    raise KeyError("no such auction")


def fail_after_two(done: list[int]) -> None:
    done += [1, 2]
    users_function()


def test_error_names_step_partition_and_offset() -> None:
    with pytest.raises(UserCodeError) as caught, calling("parse", ORIGIN, 1):
        users_function()
    message = str(caught.value)
    assert "step 'parse'" in message
    assert "source 'bids', partition 'p1', offset 41" in message
    assert "KeyError: 'no such auction'" in message


def test_traceback_shows_the_users_frames_only() -> None:
    with pytest.raises(UserCodeError) as caught, calling("parse"):
        users_function()
    message = str(caught.value)
    assert "in users_function" in message
    assert "usercode.py" not in message.replace("test_usercode.py", "")


def test_index_may_be_found_after_the_failure() -> None:
    done: list[int] = []
    with (
        pytest.raises(UserCodeError, match="offset 42"),
        calling("parse", ORIGIN, lambda: len(done)),
    ):
        fail_after_two(done)


def test_unknown_row_gives_the_range_of_offsets() -> None:
    assert place(ORIGIN) == "source 'bids', partition 'p1', offsets 40 to 42"


def test_exit_of_user_code_is_an_error_of_user_code() -> None:
    with pytest.raises(UserCodeError, match="SystemExit"), calling("parse"):
        raise SystemExit(3)


@pytest.mark.parametrize("error", [InputError("bad line"), KeyboardInterrupt()])
def test_our_own_errors_and_interrupts_pass_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, calling("parse"):
        raise error
    assert caught.value is error


def test_failure_without_a_python_frame_still_has_its_sentence() -> None:
    with pytest.raises(UserCodeError, match="ValueError: invalid literal"), calling("parse"):
        list(map(int, ["x"]))
