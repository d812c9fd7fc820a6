"""Text for a terminal: columns, sections, and nothing in them that a terminal would obey."""

from collections.abc import Iterable

import typer

__all__ = ["hexdump", "printable", "section", "table"]


def table(rows: Iterable[tuple[str, ...]], *, err: bool = False) -> None:
    """Print rows in columns that are as wide as they must be."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo(printable("  ".join(cells)).rstrip(), err=err)


def section(title: str, text: str) -> None:
    """Print a title and an indented text below it."""
    typer.echo(f"\n{title}")
    for line in text.splitlines() or [""]:
        typer.echo(f"    {printable(line)}")


def printable(text: str) -> str:
    """The text without what moves a cursor or changes colours; a stranger may have written it."""
    return "".join(
        letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in text
    )


def hexdump(content: bytes) -> str:
    """Sixteen bytes a line: where, in hexadecimal, and those that are letters."""
    lines = []
    for start in range(0, len(content), 16):
        piece = content[start : start + 16]
        letters = "".join(chr(code) if 32 <= code < 127 else "." for code in piece)
        lines.append(f"{start:08x}  {piece.hex(' '):<47}  {letters}")
    return "\n".join(lines) or "(empty)"
