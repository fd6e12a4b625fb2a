"""A course of three small chapters that keeps every rule, for faults to be planted in.

It is written to a folder that PI_COURSE_DATA names, in a process of its own: a planted fault never
touches the checkout. `settle` makes again what is derived (starters, package, notebook marks,
digests of proofs), so that a planted edit breaks the rule it is meant for and no other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pi_course_kit import checkpoint, snapshot, sync

ERRORS = '''\
"""The errors of the package."""


class PiError(Exception):
    """The root of them all."""
'''

START = '''\
"""Where it starts."""


def start() -> str:
    """The first word."""
    return "ready"
'''

WORDS = '''\
"""Words for those who greet."""

FAREWELL = "bye"
'''

HELLO = '''\
"""Greetings."""

from pi_course.errors import PiError


class NamelessError(PiError):
    """Nobody was named."""


def hello(name: str) -> str:
    """A friendly word for one person."""
    if not name.strip():
        raise NamelessError("hello() needs a name: whom shall it greet?")
    return f"hello {name}"


def greet_all(names: list[str]) -> list[str]:
    """A friendly word for each, in their order."""
    greeted: list[str] = []
    for name in names:
        greeted.append(hello(name))
    return greeted
'''

# What a later chapter adds to greet.py; chapters after 02 are made from it by `add_chapter`.
ADDED = '''

def {symbol}(name: str) -> str:
    """A word at the end."""
    if name == "":
        return {word}
    return f"{{{word}}} {{name}}"


def {symbol}_twice(name: str) -> tuple[str, str]:
    """The same word two times."""
    return {symbol}(name), {symbol}(name)
'''

MANIFEST = """\
number = {number}
slug = "{slug}"
title = "Chapter {number}"
idea = "One idea."
artifact = "{file}"
minutes = 10
level = "entry"
requires = [{requires}]
mode = "{mode}"
goals = ["say a word"]
files = ["{file}"]
given = [{given}]
starters = {starters}
first_red = [{first_red}]
run = "from {module} import {symbol}"
interface = "Words are joined with one blank."

{terms}{labs}[[faults]]
id = "quiet"
title = "Say nothing"
file = "{file}"
old = '''{old}'''
new = '''{new}'''
expect = "tests"
tests = [{fault_tests}]
shows = "no word"

{questions}[[pi]]
version = "1.6.0"
text = "Pi greets nobody."
"""

LAB = """\
[[labs]]
id = "{id}"
title = "A word"
symbols = ["{file}:{symbol}"{more}]
expect = "a word"

[[labs.steps]]
name = "words"
tests = [{tests}]

"""

TERM = '[[terms]]\nterm = "{term}"\ntext = "{text}"\n\n'
QUESTION = '[[questions]]\nask = "Which word, {n}?"\nanswer = "That one."\nshow = "{show}"\n\n'

TYPES = """\

[[faults]]
id = "number"
title = "Promise a number"
file = "pi_course/greet.py"
old = 'def hello(name: str) -> str:'
new = 'def hello(name: str) -> int:'
expect = "types"
shows = "the type checker says so"

[[faults]]
id = "loud"
title = "Rename a local"
file = "pi_course/greet.py"
old = 'for name in names:'
new = 'for name in list(names):'
expect = "nothing"
reason = "A copy of the list has the same names."
"""

SCENARIO = """\

[[scenarios]]
id = "greeting"
title = "A word for one person"
lab = "1.1"
code = '''
from pi_course.greet import hello


async def scenario(trace):
    trace(hello("Ann"))
'''
"""

TEST_START = '''\
"""The focused test."""


def test_start() -> None:
    """It says ready."""
    from pi_course.start import start

    assert start() == "ready"
'''

TEST_HELLO = '''\
"""The focused test."""

import pytest


def test_hello_name() -> None:
    """It says hello to the one who is named."""
    from pi_course.greet import hello

    assert hello("Ann") == "hello Ann"


def test_hello_nobody() -> None:
    """It refuses to greet nobody."""
    from pi_course.errors import PiError
    from pi_course.greet import NamelessError, hello

    assert issubclass(NamelessError, PiError)
    with pytest.raises(NamelessError):
        hello(" ")


def test_greet_all() -> None:
    """It greets each in their order."""
    from pi_course.greet import greet_all

    assert greet_all(["Ann", "Bo"]) == ["hello Ann", "hello Bo"]
'''

TEST_ADDED = '''\
"""The focused test."""


def test_{symbol}_name() -> None:
    """It says the word to the one who is named, or alone."""
    from pi_course.greet import {symbol}

    assert {symbol}("Bo") == "{symbol} Bo"
    assert {symbol}("") == "{symbol}"


def test_{symbol}_twice() -> None:
    """It says it two times."""
    from pi_course.greet import {symbol}_twice

    assert {symbol}_twice("Bo") == ("{symbol} Bo", "{symbol} Bo")
'''


def write(root: Path) -> None:
    """The whole course, all rules kept once `settle` has run."""
    _put(root, "checkpoints/00-start/target/pi_course/__init__.py", '"""The package."""\n')
    _put(root, "checkpoints/00-start/target/pi_course/errors.py", ERRORS)
    _put(root, "checkpoints/00-start/target/pi_course/start.py", START)
    _put(root, "checkpoints/00-start/parent/tests/test_00_start.py", TEST_START)
    _put(root, "checkpoints/00-start/checkpoint.toml", _start())
    _put(root, "checkpoints/01-hello/target/pi_course/greet.py", HELLO)
    _put(root, "checkpoints/01-hello/parent/tests/test_01_hello.py", TEST_HELLO)
    _put(root, "checkpoints/01-hello/hints.md", "## 1.1\n\nJoin the word and the name.\n")
    _put(root, "checkpoints/01-hello/checkpoint.toml", _hello())
    _put(root, "checkpoints/02-bye/target/pi_course/words.py", WORDS)
    add_chapter(root, 2, "bye", "FAREWELL")
    for name in ("00-start", "01-hello"):
        _notebook(root, name)


def add_chapter(root: Path, number: int, symbol: str, word: str) -> None:
    """A chapter with starters that adds `symbol` and `symbol`_twice to the last greet.py."""
    folder = f"checkpoints/{number:02d}-{symbol}"
    earlier = sorted(root.glob("checkpoints/*/target/pi_course/greet.py"))[-1]
    text = earlier.read_text(encoding="utf-8") + ADDED.format(symbol=symbol, word=word)
    if word == "FAREWELL":
        text = text.replace("PiError\n", "PiError\nfrom pi_course.words import FAREWELL\n", 1)
    _put(root, f"{folder}/target/pi_course/greet.py", text)
    test = f"parent/tests/test_{number:02d}_{symbol}.py"
    _put(root, f"{folder}/{test}", TEST_ADDED.format(symbol=symbol))
    hints = f"## {number}.1\n\nThe word, then the name.\n\n## {number}.2\n\nDo it twice.\n"
    _put(root, f"{folder}/hints.md", hints)
    _put(root, f"{folder}/checkpoint.toml", _added(number, symbol, word))
    _notebook(root, f"{number:02d}-{symbol}")


def _start() -> str:
    return MANIFEST.format(
        number=0,
        slug="start",
        file="pi_course/start.py",
        module="pi_course.start",
        symbol="start",
        mode="observe",
        requires="",
        given="",
        starters="false",
        first_red="",
        terms=TERM.format(term="beginning", text="Where it starts."),
        labs=LAB.format(
            id="0.1", file="pi_course/start.py", symbol="start", more="", tests='"test_start"'
        ),
        old='return "ready"',
        new='return ""',
        fault_tests='"test_start"',
        questions="".join(QUESTION.format(n=n, show="start()") for n in range(4)),
    )


def _hello() -> str:
    file = "pi_course/greet.py"
    more = f', "{file}:greet_all", "{file}:NamelessError"'
    tests = '"test_hello_name", "test_hello_nobody", "test_greet_all"'
    text = MANIFEST.format(
        number=1,
        slug="hello",
        file=file,
        module="pi_course.greet",
        symbol="hello",
        mode="rebuild",
        requires='"00"',
        given="",
        starters="false",
        first_red=f'"{file} is missing"',
        terms=TERM.format(term="greeting", text="A friendly word."),
        labs=LAB.format(id="1.1", file=file, symbol="hello", more=more, tests=tests),
        old='return f"hello {name}"',
        new="return name",
        fault_tests='"test_hello_name", "test_greet_all"',
        questions="".join(QUESTION.format(n=n, show="hello('Ann')") for n in range(4)),
    )
    return text + TYPES + SCENARIO


def _added(number: int, symbol: str, word: str) -> str:
    file = "pi_course/greet.py"
    name, twice = f'"test_{symbol}_name"', f'"test_{symbol}_twice"'
    labs = LAB.format(id=f"{number}.1", file=file, symbol=symbol, more="", tests=name)
    labs += LAB.format(id=f"{number}.2", file=file, symbol=f"{symbol}_twice", more="", tests=twice)
    return MANIFEST.format(
        number=number,
        slug=symbol,
        file=file,
        module="pi_course.greet",
        symbol=symbol,
        mode="rebuild",
        requires=f'"{number - 1:02d}"',
        given='"pi_course/words.py"' if word == "FAREWELL" else "",
        starters="true",
        first_red=f'"{file} is still the starter"',
        terms=TERM.format(term="farewell" if number == 2 else symbol, text="A word at the end."),
        labs=labs,
        old=f"        return {word}",
        new='        return ""',
        fault_tests=name,
        questions="".join(QUESTION.format(n=n, show=f"{symbol}('Bo')") for n in range(4)),
    )


def _notebook(root: Path, name: str) -> None:
    number = name[:2]
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": f"{number}-01", "metadata": {}, "source": "Read this."},
        {
            "cell_type": "code",
            "id": f"{number}-02",
            "metadata": {},
            "execution_count": 1,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "2\n"}],
            "source": "print(1 + 1)",
        },
    ]
    notebook: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    _put(root, f"notebooks/{name}.ipynb", json.dumps(notebook))


def _put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def settle(root: Path) -> None:
    """Make again what is derived. PI_COURSE_DATA must name `root`."""
    from pi_course_kit.notebook import build

    for chapter in checkpoint.checkpoints():
        for path, data in sync.starters(chapter).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    last = checkpoint.checkpoints()[-1].number
    snapshot.write(snapshot.snapshot_files(last), root)
    for path in build.notebooks():
        notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        notebook["metadata"]["pi_course"] = {
            "source": build.source_hash(notebook),
            "digest": snapshot.target_digest(build.number_of(path)),
            "outputs": 1,
        }
        path.write_text(json.dumps(notebook), encoding="utf-8", newline="\n")
