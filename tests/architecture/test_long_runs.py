"""`scripts/long` lists what it can run, and writes the outcome of a run."""

import dataclasses
from pathlib import Path

import pytest

from scripts import recorded
from scripts.recorded import RUNS, LongRun, main, report

ROOT = Path(__file__).parents[2]
#: In Python: what pytest says at the end of a run.
SAYS = "print('..... [100%]'); print('ring  tests'); print('pure  5'); raise SystemExit(3)"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LongRun:
    run = LongRun("a tiny run", ("-c", SAYS), {"HEADRACE_TINY": "all"})
    monkeypatch.setitem(RUNS, "tiny", run)
    monkeypatch.setattr(recorded, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    return run


def test_without_a_name_all_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(RUNS) == sorted(RUNS)


def test_an_unknown_name_fails_and_lists_those_that_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["soup"]) == 2
    assert "simulator" in capsys.readouterr().err


def test_a_run_writes_its_summary_and_has_the_exit_code_of_the_program(
    tiny: LongRun, tmp_path: Path
) -> None:
    assert main(["tiny", "-k", "some"]) == 3
    written = (tmp_path / "tests" / "long" / "tiny.md").read_text()
    assert written.endswith("```\nring  tests\npure  5\n```\n")
    assert "HEADRACE_TINY=all python -c" in written
    assert "-k some" in written


def test_a_run_that_writes_its_own_report_is_not_recorded(
    tiny: LongRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RUNS, "tiny", dataclasses.replace(tiny, writes=True))
    assert main(["tiny"]) == 3
    assert not (tmp_path / "tests" / "long").exists()


def test_a_run_that_breaks_off_is_recorded_as_a_whole() -> None:
    assert report("kills", (), ["an error"]).endswith("```\nan error\n```\n")


@pytest.mark.parametrize("name", RUNS)
def test_what_a_run_needs_is_there(name: str) -> None:
    paths = [a for a in RUNS[name].arguments if a.endswith(".py")]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_each_variable_of_a_run_is_read_by_the_tests() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    variables = {name for run in RUNS.values() for name in run.environment}
    assert [name for name in variables if f'environ.get("{name}"' not in sources] == []
