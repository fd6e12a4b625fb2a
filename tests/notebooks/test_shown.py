"""Both forms of what a cell shows say the same, and need neither CSS nor scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from pi_course_kit.notebook.shown import (
    WIDTH,
    Block,
    Code,
    Facts,
    Fold,
    Heading,
    Items,
    Pre,
    Table,
    Text,
    show,
)

BLOCKS: list[Block] = [
    Heading("A heading"),
    Text("A paragraph with `code` in it. " * 6),
    Pre("def f():\n    return '<b>'"),
    Items(["one", "two " * 40], numbered=True),
    Facts([("name", "value"), ("a longer name", "word " * 30)]),
    Table(("#", "event", "what is known"), [("1", Code("start"), ""), ("2", "delta", "x " * 90)]),
    Table(("wide",) * 9, [("0123456789",) * 9]),
    Fold("A question?", [Text("Its answer."), Pre("x = 1")]),
]


class Words(HTMLParser):
    """Collects the text, and fails on a tag that is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("style", "script")
        assert {name for name, _ in attrs} <= {"scope", "align"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_text_and_html_hold_the_same_words(block: Block) -> None:
    shown = show(block)
    parser = Words()
    parser.feed(shown.html)
    assert parser.open == []
    listed = isinstance(block, Items)  # its numbers come from <ol>
    plain = re.sub(r"(?m)^\d+\. ", "", shown.text) if listed else shown.text
    assert sorted(words(" ".join(parser.text))) == sorted(words(plain))


def test_the_text_form_fits_a_terminal() -> None:
    text = repr(show(*(block for block in BLOCKS if not isinstance(block, Table))))
    assert max(len(line) for line in text.split("\n")) <= WIDTH
    table = repr(show(Table(("#", "event", "known"), [("1", "delta", "x " * 90)])))
    assert max(len(line) for line in table.split("\n")) <= WIDTH
    assert all(line == line.rstrip() for line in table.split("\n"))


def test_markup_in_values_is_text() -> None:
    shown = show(Text("a < b & `c > d`"), Pre("<script>"), Items(["<i>"]))
    assert "<p>a &lt; b &amp; <code>c &gt; d</code></p>" in shown.html
    assert "<script>" not in shown.html and "<i>" not in shown.html


def test_a_fold_is_closed_until_it_is_opened() -> None:
    assert "<details>\n<summary>Why?</summary>" in show(Fold("Why?", [Text("So.")])).html
