"""verify: how it reads source and prose, and the mutants it makes."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from pi_course_kit.verify import isolation, leaks, prose, sources
from pi_course_kit.verify.mutants import mutants


def made(target: str, before: str = "") -> dict[str, str]:
    """id -> the line that differs from the target, of each mutant."""
    target, before = dedent(target), dedent(before)
    plain = ast.unparse(ast.parse(target)).split("\n")
    found: dict[str, str] = {}
    for mutant in mutants("pi_course/m.py", target, before):
        lines = [line for line in mutant.text.split("\n") if line and line not in plain]
        found[mutant.id.removeprefix("m.py:")] = " / ".join(line.strip() for line in lines)
    return found


def test_bodies_answers_and_conditions() -> None:
    target = '''
        def f(a: int, b: bool = True) -> str:
            """It says."""
            if a > 1 and b:
                return "x"
            while not a:
                a = 1
            return "y" if a else "z"
        '''
    assert made(target) == {
        "f/body": "pass",
        "f/constant": "return ''",
        "f/bool-1": "def f(a: int, b: bool=False) -> str:",
        "f/bool-2": "if a > 1 or b:",
        "f/compare-1": "if a <= 1 and b:",
        "f/not-1": "while not not a:",
        "f/condition-1": "return 'y' if not a else 'z'",
    }


def test_class_statements_are_removed_one_by_one() -> None:
    target = """
        @dataclass(frozen=True, slots=True)
        class A:
            "Docstrings are no code."
            x: int
            y: ClassVar[Literal["y"]] = "y"

            def done(self) -> bool:
                return self.x in (1, 2)
        """
    assert made(target) == {
        "A/bool-1": "@dataclass(frozen=False, slots=True)",
        "A.x/removed": "",
        "A.y/removed": "",
        "A.done/body": "pass",
        "A.done/constant": "return True",
        "A.done/constant-2": "return False",
        "A.done/compare-1": "return self.x not in (1, 2)",
    }


def test_only_what_is_new_is_mutated() -> None:
    before = "def f():\n    return g() == 1\n\n\nclass A:\n    x = 1\n"
    target = before + "    y = 2\n\n\nLIMIT = 3 > 2\n"
    assert list(made(target, before)) == ["A.y/removed", "LIMIT/compare-1"]


def test_protocols_ellipses_and_typing_are_left_alone() -> None:
    target = """
        from typing import TYPE_CHECKING, Protocol

        if TYPE_CHECKING:
            from pi_course.m import B

        class A(Protocol):
            x: int

            def f(self) -> bool: ...

        def g(value: Literal[True]) -> None: ...

        def h() -> None:
            pass
        """
    assert made(target) == {}


def test_generators_stay_generators() -> None:
    text = next(m.text for m in mutants("m.py", "def f():\n    yield 1\n", ""))
    assert ast.unparse(ast.parse(text)) == "def f():\n    return\n    yield"


def test_conditions_of_comprehensions_and_cases() -> None:
    target = """
        def f(xs):
            match xs:
                case [x] if x:
                    return [y for y in x if y]
        """
    assert list(made(target)) == ["f/body", "f/condition-1", "f/condition-2"]


# Leaks


def test_three_telling_lines_in_a_row_are_the_answer() -> None:
    body = "    first = read(source)\n    second = cut(first)\n    return join(first, second)\n"
    text = f"def f(source):\n{body}\n\ndef g():\n    return None\n"
    lines = leaks.body_lines(text)
    assert lines == [["first = read(source)", "second = cut(first)", "return join(first, second)"]]
    assert len(leaks.runs_of(lines[0])) == 1
    assert leaks.body_lines(text, {"g"}) == []


# Prose


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("run `pi-course check --lab 3.1` now", ["pi-course check --lab 3.1"]),
        ("    pi-course practice 03\n", ["pi-course practice 03"]),
        ("$ pi-course hint 3.1", ["pi-course hint 3.1"]),
        ("!pi-course list", ["pi-course list"]),
        ("pi-course is a kit, `pi-courses` are many", []),
    ],
)
def test_commands_are_found_in_code(text: str, commands: list[str]) -> None:
    assert prose.commands_in(text) == commands


def test_terms_are_words_of_their_own() -> None:
    assert prose.uses_term("Stop reasons differ.", "stop reason")
    assert not prose.uses_term("the `partial` argument", "partial")
    assert not prose.uses_term("partial-order", "partial")


def test_what_a_text_reaches_goes_through_the_files(tmp_path: Path) -> None:
    files: dict[str, Path] = {}
    for name, text in {
        "pi_course/__init__.py": "",
        "pi_course/a.py": "from pi_course.b import x",
        "pi_course/b.py": "x = 1",
        "pi_course/c.py": "",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        files[name] = file
    reached = sources.reached("def f():\n    from pi_course import a\n", files)
    assert reached == {"pi_course/__init__.py", "pi_course/a.py", "pi_course/b.py"}


@pytest.mark.parametrize(
    ("span", "names"),
    [("Start", ["Start"]), ("Start(partial)", ["Start"]), ("text()", []), ("a + B", [])],
)
def test_names_in_code_spans(span: str, names: list[str]) -> None:
    assert isolation._quoted_names(span) == names  # pyright: ignore[reportPrivateUsage]


def test_a_test_is_read_with_what_it_calls() -> None:
    text = "def a():\n    import x\n\ndef b():\n    return a()\n\n"
    text += "def test_it():\n    b()\n\ndef c(): ...\n"
    found = sources.with_helpers(text, "test_it")
    assert "import x" in found
    assert "def c" not in found
