"""A small course of two chapters, so that the kit's rules are tested apart from the content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from pi_course_kit import checkpoint, snapshot

MANIFEST = """\
number = {number}
slug = "{slug}"
title = "Chapter {number}"
idea = "One idea."
artifact = "pi_course/greet.py"
minutes = 10
level = "entry"
requires = []
mode = "rebuild"
goals = ["say hello"]
files = ["pi_course/greet.py"]
first_red = ["{first_red}"]
starters = {starters}
run = "from pi_course.greet import hello"

[[terms]]
term = "greeting"
text = "A friendly word."

[[labs]]
id = "{number}.1"
title = "The greeting"
symbols = ["pi_course/greet.py:{symbol}"]
expect = "a friendly word"

[[labs.steps]]
name = "words"
tests = ["test_{symbol}"]

[[faults]]
id = "quiet"
title = "Say nothing"
file = "pi_course/greet.py"
old = "return f\\"{word}"
new = "return f\\""
expect = "tests"
tests = ["test_{symbol}"]
shows = "no word"

{questions}
[[pi]]
version = "1.6.0"
text = "Pi greets nobody."
"""

QUESTION = """\
[[questions]]
ask = "What does hello say to NAME?"
answer = "A friendly word."
show = "hello('Ann')"

"""

TEST = '''\
"""The focused test."""


def test_{symbol}() -> None:
    """It says {word} to the one who is named."""
    from pi_course.greet import {symbol}

    assert {symbol}("Ann") == "{word} Ann"
'''

HELLO = '''\
"""Greetings."""


def hello(name: str) -> str:
    return f"hello {name}"
'''

BYE = (
    HELLO
    + """

def bye(name: str) -> str:
    return f"bye {name}"
"""
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8", newline="\n")


@pytest.fixture
def fake_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """checkpoints/ with 01-hello (no starters) and 02-bye (starters); a clean workspace."""
    root = tmp_path / "course" / "checkpoints"
    for number, slug, symbol, word, red in (
        (1, "hello", "hello", "hello", "pi_course/greet.py is missing"),
        (2, "bye", "bye", "bye", "pi_course/greet.py: bye() is still the starter"),
    ):
        folder = root / f"{number:02d}-{slug}"
        text = MANIFEST.format(
            number=number,
            slug=slug,
            symbol=symbol,
            word=word,
            first_red=red,
            starters=str(number == 2).lower(),
            questions="".join(QUESTION.replace("NAME", n) for n in ("Ann", "Bo", "Cy", "Di")),
        )
        write(folder / "checkpoint.toml", text)
        write(folder / "hints.md", f"## {number}.1\n\nJoin the word and the name.\n")
        write(folder / "target/pi_course/greet.py", HELLO if number == 1 else BYE)
        write(
            folder / f"parent/tests/test_{number:02d}_{slug}.py",
            TEST.format(symbol=symbol, word=word),
        )
    write(root / "01-hello/target/pi_course/__init__.py", "")
    starter = (
        HELLO + '\n\ndef bye(name: str) -> str:\n    raise NotImplementedError("Lab 2.1: bye()")\n'
    )
    write(root / "02-bye/parent/pi_course/greet.py", starter)
    monkeypatch.setattr(checkpoint, "data_dir", lambda kind: root)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("PI_COURSE_CACHE", str(tmp_path / "cache"))
    _forget()
    yield root
    _forget()


def _forget() -> None:
    for cached in (
        checkpoint.folders,
        checkpoint.checkpoints,
        checkpoint._load,  # pyright: ignore[reportPrivateUsage]
        snapshot.snapshot_files,
        snapshot.test_files,
    ):
        cached.cache_clear()
