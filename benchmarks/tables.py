"""One table, shown on the terminal or written as Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich import table as rich_table
from rich.console import Console


@dataclass
class Table:
    """Header and rows of text; the first column is aligned left, all others right."""

    title: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        """Add a row."""
        self.rows.append([str(cell) for cell in cells])

    def show(self, console: Console) -> None:
        """Print to the terminal."""
        shown = rich_table.Table(title=self.title, title_justify="left")
        for k, name in enumerate(self.header):
            shown.add_column(name.replace("[", r"\["), justify="left" if k == 0 else "right", no_wrap=k == 0)
        for row in self.rows:
            shown.add_row(*(cell.replace("**", "").replace("[", r"\[") for cell in row))
        console.print(shown)

    def markdown(self) -> str:
        """Return the table as Markdown, its title above it."""
        lines = ["| " + " | ".join(self.header) + " |", "|---" + "|---:" * (len(self.header) - 1) + "|"]
        lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in self.rows]
        return "\n".join([*([f"**{self.title}**", ""] if self.title else []), *lines, ""])


def seconds(value: float | None) -> str:
    """Show a time with three digits that count."""
    if value is None:
        return "–"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def megabytes(value: float | None) -> str:
    """Show bytes in millions."""
    return "–" if value is None else f"{value / 1e6:,.0f}"


def ratio(value: float | None) -> str:
    """Show a ratio with two digits after the point."""
    return "–" if value is None else (f"{value:.2f}" if value < 100 else f"{value:.0f}")


def count(value: float | None) -> str:
    """Show a large count in thousands, millions or billions."""
    if value is None:
        return "–"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g} {letter}"
    return f"{value:.0f}"


def exact(value: float | None) -> str:
    """Show an objective with the digits that tell answers apart."""
    return "–" if value is None else f"{value:.8g}"
