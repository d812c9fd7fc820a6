"""Each mutation still fits the code, and the program that tries them distinguishes what is noticed from what is not."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.checkout import outside_of_hooks
from scripts.mutations import (
    MUTATIONS,
    ROOT,
    Finding,
    Mutation,
    all_mutations,
    copied_tree,
    is_enough,
    parse,
    report,
    tried,
    turns,
)

MUTATION = Mutation(
    Path("late-row-kept.patch"), "Late is early", "wrong sums", ("tests/watermarks",), ("a.py",)
)
#: Quickly noticed by the tests that it names.
SAMPLE = MUTATIONS / "merged-watermark-falls.patch"


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with copied_tree() as tree:
        yield tree


def test_there_are_at_least_25() -> None:
    assert len(all_mutations()) >= 25


@pytest.mark.parametrize("path", sorted(MUTATIONS.glob("*.patch")), ids=lambda path: path.stem)
def test_a_patch_fits_the_code_and_names_tests(path: Path) -> None:
    mutation = parse(path, path.read_text())
    checked = subprocess.run(
        ["git", "apply", "--check", str(path)],
        cwd=ROOT,
        env=outside_of_hooks(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stderr == ""
    assert all(file.startswith("headrace/") for file in mutation.files)
    for first in mutation.first:
        tests, _, name = first.partition("::")
        assert (ROOT / tests).exists()
        assert not name or f"def {name}(" in (ROOT / tests).read_text()


@pytest.mark.parametrize("missing", ["title", "breaks", "first", "--- a/"])
def test_a_patch_without_a_line_of_the_header_is_refused(missing: str) -> None:
    lines = SAMPLE.read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(missing))
    with pytest.raises(ValueError, match="merged-watermark-falls"):
        parse(SAMPLE, text)


def test_the_tests_that_a_patch_names_run_before_the_rings() -> None:
    order = [(ring, which[:1]) for ring, which in turns(MUTATION, ("crash", "pure"))]
    assert order == [("pure", ("tests/watermarks",)), ("pure", ("-n",)), ("crash", ("-n",))]


def test_without_the_pure_ring_only_the_others_run() -> None:
    assert [ring for ring, _ in turns(MUTATION, ("spark",))] == ["spark"]


def test_two_may_escape_the_pure_ring() -> None:
    pure, spark, none = (Finding(MUTATION, ring, "", 1) for ring in ("pure", "spark", None))
    assert is_enough([pure, spark, none], may_escape=2)
    assert not is_enough([pure, spark, none, none], may_escape=2)


def test_the_report_says_what_each_breaks_and_which_ring_and_test_noticed() -> None:
    found = Finding(MUTATION, "pure", "tests/a.py::test_b[1|2]", 3.4)
    lines = report([found, Finding(MUTATION, None, "", 200)], "when, of what").splitlines()
    assert lines[2] == "when, of what"
    assert lines[4] == "The pure ring finds 1 of 2."
    assert lines[-2:] == [
        r"| late-row-kept | Late is early. Wrong sums. | pure | `tests/a.py::test_b[1\|2]` | 3 |",
        "| late-row-kept | Late is early. Wrong sums. | survived |  | 200 |",
    ]


def test_a_mutation_is_noticed_by_a_test_that_passes_without_it(tree: Path) -> None:
    mutation = parse(SAMPLE, SAMPLE.read_text())
    before = (tree / mutation.files[0]).read_bytes()
    finding = tried(mutation, tree, [("pure", mutation.first)])
    assert finding.ring == "pure"
    assert finding.test.startswith("tests/watermarks/test_merging.py::")
    assert (tree / mutation.files[0]).read_bytes() == before


def test_a_mutation_that_no_test_notices_survives(tree: Path) -> None:
    mutation = parse(SAMPLE, SAMPLE.read_text())
    finding = tried(mutation, tree, [("pure", ("tests/vocabulary/test_secrets.py",))])
    assert finding.ring is None


def test_a_test_that_fails_without_the_mutation_proves_nothing(tree: Path) -> None:
    failing = tree / "tests" / "watermarks" / "test_planted.py"
    failing.write_text("def test_never() -> None:\n    raise AssertionError\n")
    mutation = parse(SAMPLE, SAMPLE.read_text())
    with pytest.raises(RuntimeError, match=r"test_planted\.py::test_never fails without"):
        tried(mutation, tree, [("pure", ("tests/watermarks/test_planted.py",))])
