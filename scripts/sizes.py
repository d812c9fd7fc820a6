"""Says which files and functions are too long to be read in one go, and fails if there are any.

Lengths are counted in lines, docstrings and comments included. `EXEMPT` is the register of debts: a path
or `path:function` with the reason beside it. It starts empty and should stay so.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["problems"]

FILE_LIMIT = 400
FUNCTION_LIMIT = 50
EXEMPT: dict[str, str] = {}


def problems(root: Path) -> list[str]:
    """One sentence for each file of headrace/ and function in it that is past its limit."""
    found = []
    for path in sorted((root / "headrace").rglob("*.py")):
        text = path.read_text()
        name = path.relative_to(root).as_posix()
        lines = text.count("\n")
        if lines > FILE_LIMIT and name not in EXEMPT:
            found.append(f"{name}: {lines} lines, the limit is {FILE_LIMIT}")
        found.extend(_long_functions(name, ast.parse(text)))
    return found


def _long_functions(name: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LIMIT and f"{name}:{node.name}" not in EXEMPT:
            yield f"{name}:{node.lineno}: {node.name} has {lines} lines, the limit is {FUNCTION_LIMIT}"


if __name__ == "__main__":
    sentences = problems(Path(__file__).resolve().parent.parent)
    print("\n".join(sentences) or "sizes: no file or function is too long")
    sys.exit(bool(sentences))
