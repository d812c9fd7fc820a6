"""A session that a user brings is taken if it fits, else refused with the list of what to change."""

from types import SimpleNamespace
from typing import Any

import pytest

from headrace._spark.errors import carried, translate
from headrace._spark.session import _local
from headrace._spark.settings import check_session
from headrace.errors import EngineError, SetupError, UserCodeError


def session(master: str, **conf: str) -> Any:
    """As much of a session as the check looks at."""
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            master=master,
            getConf=lambda: SimpleNamespace(
                get=lambda key, default=None: settings.get(key, default)
            ),
        )
    )


def test_fitting_session_is_taken() -> None:
    check_session(session("local[2,4]"))


def test_everything_that_does_not_fit_is_listed() -> None:
    with pytest.raises(SetupError) as caught:
        check_session(
            session("local[2]", spark_python_worker_reuse="false", spark_speculation="true")
        )
    text = str(caught.value)
    assert "spark.python.worker.reuse is false, set it to true" in text
    assert "spark.speculation is true, set it to false" in text
    assert "use local[2,4]" in text


def test_session_on_a_cluster_is_refused() -> None:
    with pytest.raises(SetupError, match="needs a local master"):
        check_session(session("spark://elsewhere:7077"))


@pytest.mark.parametrize(
    ("given", "used"),
    [("local", "local[1,4]"), ("local[3]", "local[3,4]"), ("local[2,1]", "local[2,1]")],
)
def test_local_master_may_retry_tasks(given: str, used: str) -> None:
    assert _local(given) == used


def test_our_error_survives_the_way_through_spark() -> None:
    with pytest.raises(RuntimeError) as wrapped, carried():
        raise UserCodeError('step "a" failed:\n  line 3 {"x": 1} \\ end')
    told = translate(RuntimeError(f"org.apache.spark: Traceback\n{wrapped.value}\n\tat java"), None)
    assert type(told) is UserCodeError
    assert str(told) == 'step "a" failed:\n  line 3 {"x": 1} \\ end'


def test_foreign_error_keeps_its_last_python_line_only() -> None:
    text = (
        "Py4JJavaError: o1\nTraceback (most recent call last):\nKeyError: 'price'\n\tat org.apache"
    )
    told = translate(RuntimeError(text), None)
    assert type(told) is EngineError
    assert str(told) == "Spark failed: KeyError: 'price'"
