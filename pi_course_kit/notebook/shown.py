"""Values that a cell shows twice: as plain text and as semantic HTML.

Both forms are complete and deterministic. GitHub, nbval, a terminal and a screen reader get
one of them, so nothing hangs on CSS or scripts.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 80  # columns of the text form
LEAST = 12  # columns below which a table's column is not narrowed


class Code(str):
    """Text that is shown as it is, in the font of code."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph. `Words in backticks` are code."""

    text: str


@dataclass(frozen=True, slots=True)
class Pre:
    """Lines that keep their spaces: program text, a diff, what a command prints."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    items: Sequence[str]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Name and value, one pair a line."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Table:
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Fold:
    """Closed in HTML until the reader opens it; the text form shows all of it."""

    summary: str
    blocks: Sequence[Block]


Block = Heading | Text | Pre | Items | Facts | Table | Fold


@dataclass(frozen=True, slots=True, repr=False)
class Shown:
    """What a cell displays. `repr` is the text form; Jupyter takes the HTML."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def show(*blocks: Block) -> Shown:
    return Shown(as_text(blocks), as_html(blocks))


def as_text(blocks: Iterable[Block]) -> str:
    return "\n\n".join(_text(block) for block in blocks)


def as_html(blocks: Iterable[Block]) -> str:
    return "<div>\n" + "\n".join(_html(block) for block in blocks) + "\n</div>"


def _text(block: Block) -> str:
    match block:
        case Heading(text):
            return text + "\n" + "-" * len(text)
        case Text(text):
            return textwrap.fill(text, WIDTH)
        case Pre(text):
            return textwrap.indent(text, "    ")
        case Items(items, numbered):
            marks = [f"{n}." for n in range(1, len(items) + 1)] if numbered else ["-"] * len(items)
            return "\n".join(
                _hang(mark + " ", item) for mark, item in zip(marks, items, strict=True)
            )
        case Facts(pairs):
            width = max(len(name) for name, _ in pairs) + 2
            return "\n".join(_hang(name.ljust(width), value) for name, value in pairs)
        case Table(head, rows):
            return _text_table(head, rows)
        case Fold(summary, inner):
            return textwrap.fill(summary, WIDTH) + "\n" + textwrap.indent(as_text(inner), "    ")


def _hang(mark: str, text: str) -> str:
    room = WIDTH - len(mark)
    wrap = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False)
    lines = [part for line in text.split("\n") for part in wrap.wrap(line) or [""]]
    blank = " " * len(mark)
    return "\n".join((blank + line if n else mark + line).rstrip() for n, line in enumerate(lines))


def _text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [
        max([len(head[n]), *(len(line) for row in rows for line in row[n].split("\n"))])
        for n in range(len(head))
    ]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1
    lines = [_text_row(head, widths), "  ".join("-" * width for width in widths)]
    lines += [_text_row(row, widths) for row in rows]
    return "\n".join(lines)


def _text_row(cells: Sequence[str], widths: Sequence[int]) -> str:
    parts = [
        [part for line in cell.split("\n") for part in textwrap.wrap(line, width) or [""]]
        for cell, width in zip(cells, widths, strict=True)
    ]
    high = max(len(part) for part in parts)
    return "\n".join(
        "  ".join(
            (part[n] if n < len(part) else "").ljust(width)
            for part, width in zip(parts, widths, strict=True)
        ).rstrip()
        for n in range(high)
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<p><strong>{_inline(text)}</strong></p>"
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Pre(text):
            return f"<figure>\n<pre>{escape(text, quote=False)}</pre>\n</figure>"
        case Items(items, numbered):
            tag = "ol" if numbered else "ul"
            rows = "\n".join(f"<li>{_inline(item)}</li>" for item in items)
            return f"<{tag}>\n{rows}\n</{tag}>"
        case Facts(pairs):
            rows = "\n".join(
                f'<tr><th scope="row">{_left(name)}</th><td>{_left(value)}</td></tr>'
                for name, value in pairs
            )
            return f"<table>\n<tbody>\n{rows}\n</tbody>\n</table>"
        case Table(head, rows):
            top = "".join(f'<th scope="col">{_left(cell)}</th>' for cell in head)
            body = "\n".join(
                "<tr>" + "".join(f"<td>{_left(cell)}</td>" for cell in row) + "</tr>"
                for row in rows
            )
            return (
                f"<table>\n<thead>\n<tr>{top}</tr>\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
            )
        case Fold(summary, inner):
            return f"<details>\n<summary>{_inline(summary)}</summary>\n{as_html(inner)}\n</details>"


def _left(cell: str) -> str:
    # JupyterLab aligns the cells of an output's table to the right; the attribute is the only
    # way back that its sanitizer and GitHub's both leave in place.
    return f'<div align="left">{_inline(cell)}</div>'


def _inline(text: str) -> str:
    if isinstance(text, Code):
        return f"<code>{escape(text, quote=False)}</code>"
    safe = escape(text, quote=False).replace("\n", "<br>")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
