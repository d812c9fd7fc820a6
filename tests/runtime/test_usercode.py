"""What fails in a user's code becomes one error that says where."""

import numpy as np
import pytest

from headrace._runtime.rows import Origin
from headrace._runtime.usercode import calling, cause_of, place
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


def test_key_and_row_are_named_where_no_batch_tells_them() -> None:
    with (
        pytest.raises(UserCodeError, match=r"  at key 7\n  row \{'price': 3\}"),
        calling("parse", key=lambda: 7, row=lambda: {"price": 3}),
    ):
        users_function()


def test_what_cannot_be_shown_does_not_hide_the_failure() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    with (
        pytest.raises(UserCodeError, match=r"KeyError[\s\S]*row that cannot be shown"),
        calling("parse", row=Silent),
    ):
        users_function()


def test_a_cause_has_the_words_of_the_error_and_the_users_frames() -> None:
    try:
        users_function()
    except KeyError as error:
        cause, trace = cause_of(error)
    assert cause == "KeyError: 'no such auction'"
    assert trace is not None
    assert trace.startswith("Traceback")
    assert trace.endswith(cause)
    assert cause_of(ValueError("of nobody")) == ("ValueError: of nobody", None)
