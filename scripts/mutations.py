"""Applies small bugs one after the other to a copy of the tree and reports which ring of the tests notices each.

    scripts/long mutations [NAME...] [--ring pure] [--quick]

A mutation is a patch in tests/mutations with a header: `title`, `breaks` (what goes wrong) and `first` (the tests to run
first). These run before the rings, from the fastest to the slowest. A test that fails counts only if it passes without
the mutation. A run of all mutations writes tests/mutations/RESULTS.md and fails if the pure ring misses more than two.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from scripts import checkout

__all__ = [
    "MUTATIONS",
    "RINGS",
    "ROOT",
    "Finding",
    "Mutation",
    "all_mutations",
    "copied_tree",
    "is_enough",
    "main",
    "parse",
    "report",
    "tried",
    "turns",
]

ROOT = checkout.ROOT
MUTATIONS = ROOT / "tests" / "mutations"
#: From the fastest to the slowest.
RINGS = ("pure", "spark", "services", "crash")
#: So many may escape the pure ring.
MAY_ESCAPE = 2

_PROGRAM = "scripts/long mutations"
#: It fails in each mutated copy, because a patch does not apply twice.
_NOT_A_PROOF = "tests/architecture/test_mutations.py"
_PATIENCE_S = 3600
_AT_WORK = ("-n", "2", "--dist", "loadscope", "--no-loadscope-reorder")


#: A ring, and which of its tests to run: arguments for pytest.
Turn: TypeAlias = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Mutation:
    """One patch."""

    path: Path
    title: str
    breaks: str
    #: Paths of tests that are likely to notice it.
    first: tuple[str, ...]
    #: What it changes.
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass(frozen=True)
class Finding:
    """What noticed a mutation; without a ring it survived."""

    mutation: Mutation
    ring: str | None
    test: str
    seconds: float


def main(arguments: Sequence[str]) -> int:
    """Try the mutations that the arguments choose; 1 if too many escape the pure ring."""
    options = _options(arguments)
    known = {mutation.name: mutation for mutation in all_mutations()}
    chosen = [known[name] for name in options.names] or list(known.values())
    findings = []
    with copied_tree() as tree:
        for number, mutation in enumerate(chosen, 1):
            order = turns(mutation, options.rings or RINGS)
            finding = tried(mutation, tree, islice(order, 1) if options.quick else order)
            findings.append(finding)
            print(f"{number}/{len(chosen)} {_sentence(finding)}", flush=True)
    if not options.names and not options.quick:
        (MUTATIONS / "RESULTS.md").write_text(
            report(findings, checkout.circumstances(" ".join([_PROGRAM, *arguments])))
        )
    return 0 if is_enough(findings, may_escape=0 if options.names else MAY_ESCAPE) else 1


def all_mutations() -> list[Mutation]:
    """Those of the directory, by name."""
    return [parse(path, path.read_text()) for path in sorted(MUTATIONS.glob("*.patch"))]


def parse(path: Path, text: str) -> Mutation:
    """The header of a patch; `ValueError` if a line of it is missing."""
    header, _, patch = text.partition("\n--- a/")
    said = dict(line.split(": ", 1) for line in header.splitlines() if ": " in line)
    if said.keys() != {"title", "breaks", "first"} or not patch:
        raise ValueError(f"{path.name}: a patch has the lines title, breaks and first before it")
    files = tuple(line[6:] for line in patch.splitlines() if line.startswith("+++ b/"))
    return Mutation(path, said["title"], said["breaks"], tuple(said["first"].split()), files)


def is_enough(findings: Sequence[Finding], *, may_escape: int) -> bool:
    """Whether the pure ring has found all but so many."""
    return sum(finding.ring != "pure" for finding in findings) <= may_escape


def report(findings: Sequence[Finding], circumstances: str) -> str:
    """The file of a run of all mutations."""
    pure = sum(finding.ring == "pure" for finding in findings)
    rows = [
        f"| {finding.mutation.name} | {finding.mutation.title}. {_capital(finding.mutation.breaks)}."
        f" | {finding.ring or 'survived'} | {_cell(finding.test)} | {finding.seconds:.0f} |"
        for finding in findings
    ]
    return "\n".join(
        [
            f"# {_PROGRAM}",
            "",
            circumstances,
            "",
            f"The pure ring finds {pure} of {len(findings)}.",
            "",
            "| mutation | what it breaks | found by ring | by test | seconds |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of the working tree with what is not committed yet; its `headrace` is the one that tests there import."""
    with tempfile.TemporaryDirectory(prefix="headrace-mutations-") as directory:
        tree = Path(directory).resolve() / "tree"
        for name in checkout.files():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
        _check_what_is_imported(tree)
        yield tree


def _check_what_is_imported(tree: Path) -> None:
    """Also by processes that tests start, wherever these run."""
    asking = [sys.executable, "-c", "import headrace; print(headrace.__file__)"]
    found = subprocess.run(
        asking,
        cwd=tree.parent,
        env=_environment(tree),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert Path(found.stdout.strip()) == tree / "headrace" / "__init__.py", found.stdout


def tried(mutation: Mutation, tree: Path, turns: Iterable[Turn]) -> Finding:
    """Apply it to the copy, run tests in turn until one notices it, and take it back."""
    began = time.monotonic()
    for ring, which in turns:
        _apply(mutation, tree)
        try:
            failed = _failing(tree, ("--ring", ring, *which))
        finally:
            _apply(mutation, tree, "--reverse")
        if failed is not None:
            _check_that_it_passes(tree, failed)
            return Finding(mutation, ring, failed, time.monotonic() - began)
    return Finding(mutation, None, "", time.monotonic() - began)


def turns(mutation: Mutation, rings: Collection[str]) -> Iterator[Turn]:
    """First the tests that the patch names, then all of each ring."""
    if "pure" in rings:
        yield "pure", mutation.first
    for ring in RINGS:
        if ring in rings:
            yield ring, (*_AT_WORK, f"--ignore={_NOT_A_PROOF}")


def _failing(tree: Path, arguments: Sequence[str]) -> str | None:
    """The first test that fails in the copy, None if all pass."""
    cache = tree / ".pytest_cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", *arguments]
    with subprocess.Popen(
        command,
        cwd=tree,
        env=_environment(tree),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            said, _ = running.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    if running.returncode == 0:
        return None
    noted = cache / "v" / "cache" / "lastfailed"
    failed: list[str] = sorted(json.loads(noted.read_text())) if noted.exists() else []
    if not failed:
        raise RuntimeError(f"{' '.join(command)} did not run:\n{said}")
    return failed[0]


def _check_that_it_passes(tree: Path, test: str) -> None:
    if _failing(tree, (test,)) is not None:
        raise RuntimeError(f"{test} fails without the mutation too, so it proves nothing")


def _apply(mutation: Mutation, tree: Path, *options: str) -> None:
    # Without the ceiling, a repository around the directory of temporary files would change what paths mean.
    environment = {**checkout.outside_of_hooks(), "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    subprocess.run(
        ["git", "apply", *options, str(mutation.path)], cwd=tree, env=environment, check=True
    )
    # Python compares seconds and sizes, and a mutation may be as long as what it replaces and quickly taken back.
    for file in mutation.files:
        for compiled in (tree / file).parent.glob(f"__pycache__/{Path(file).stem}.*.pyc"):
            compiled.unlink()


def _environment(tree: Path) -> Mapping[str, str]:
    """That of a run in the copy: an ordinary run, whose processes import what is there."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**ours, "PYTHONPATH": str(tree)}


def _sentence(finding: Finding) -> str:
    outcome = f"{finding.ring}: {finding.test}" if finding.ring else "SURVIVED"
    return f"{finding.mutation.name}: {outcome} ({finding.seconds:.0f} s)"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", r"\|") if text else ""


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=(__doc__ or "").splitlines()[0])
    names = [mutation.name for mutation in all_mutations()]
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(names))
    parser.add_argument("--ring", dest="rings", action="append", choices=RINGS)
    parser.add_argument("--quick", action="store_true", help="only the tests that a patch names")
    options = parser.parse_args(arguments)
    if unknown := {*options.names} - {*names}:
        parser.error(
            f"there is no mutation {', '.join(sorted(unknown))}; there are {', '.join(names)}"
        )
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
