"""Cutting, finding and laying down definitions by name."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from pi_course_kit import checkpoint, insertion, symbols
from pi_course_kit.errors import CourseError

TARGET = dedent('''\
    """A module."""

    from __future__ import annotations

    from collections.abc import Iterator, Sequence
    from dataclasses import dataclass

    LIMIT = 3  # items

    # The first thing.
    @dataclass(frozen=True)
    class Thing:
        """A thing."""

        name: str

        def shout(self) -> str:
            """Loud."""
            # a comment
            return self.name.upper()


    class Box:
        """Holds things."""

        def __init__(self) -> None:
            self.items: list[Thing] = []

        def put(self, thing: Thing) -> None:
            self.items.append(thing)

        def take(self) -> Thing:
            return self.items.pop(0)


    def each(things: Sequence[Thing]) -> Iterator[str]:
        for thing in things[:LIMIT]:
            yield thing.name


    def first(box: Box) -> str: return box.take().name
    ''')

OWNERS = {
    "Thing": "1.1",
    "each": "1.1",
    "Box": "1.2",
    "Box.take": "1.3",
    "first": "1.3",
}


def add(source: str, lab: str, *, cut: bool = False) -> str:
    given = frozenset({"LIMIT"})
    return insertion.add(source, TARGET, OWNERS, lab, cut=cut, given=given).source


def names_of(source: str) -> list[str]:
    return list(symbols.names(source))


def test_names_are_top_level_names_and_class_members() -> None:
    assert names_of(TARGET) == [
        "LIMIT",
        "Thing",
        "Thing.name",
        "Thing.shout",
        "Box",
        "Box.__init__",
        "Box.put",
        "Box.take",
        "each",
        "first",
    ]


def test_a_starter_keeps_signatures_and_docstrings_and_no_body() -> None:
    cut = symbols.starter(TARGET, OWNERS)
    ast.parse(cut)
    assert 'raise NotImplementedError("Lab 1.1: Thing.shout()")' in cut
    assert 'raise NotImplementedError("Lab 1.3: Box.take()")' in cut
    assert '"""Loud."""' in cut
    assert "a comment" not in cut
    assert "upper" not in cut
    assert "append" not in cut
    assert "yield" not in cut
    assert "LIMIT = 3" in cut
    assert "name: str" in cut


def test_adding_lab_by_lab_to_nothing_ends_in_the_whole_target() -> None:
    source = ""
    for lab in ("1.1", "1.2", "1.3"):
        source = add(source, lab)
        ast.parse(source)
    assert names_of(source) == names_of(TARGET)
    assert "NotImplementedError" not in source
    assert ast.dump(ast.parse(source).body[-1]) == ast.dump(ast.parse(TARGET).body[-1])
    assert "\n\n\nclass Box:" in source, "definitions stand apart as in the target"
    assert "\n\n\n\n" not in source
    assert source.startswith('"""A module."""\n\nfrom __future__ import annotations\n')


def test_a_later_lab_is_a_stub_until_it_is_written() -> None:
    source = add(add("", "1.1"), "1.2")
    assert "self.items.append(thing)" in source
    assert 'raise NotImplementedError("Lab 1.3: Box.take()")' in source
    assert "def first" not in source


def test_what_the_learner_wrote_stays() -> None:
    mine = "import json\n\n\ndef each(things):\n    return json.dumps(things)\n"
    after = add(mine, "1.1")
    assert "return json.dumps(things)" in after
    assert after.count("def each") == 1
    assert "class Thing" in after
    assert "LIMIT" not in after, "only what is laid brings its helpers"
    compile(after, "after", "exec")


def test_signatures_never_replace_anything() -> None:
    mine = 'def each(things):\n    raise NotImplementedError("mine")\n'
    after = add(mine, "1.1", cut=True)
    assert 'NotImplementedError("mine")' in after
    whole = add(after, "1.1")
    assert "mine" not in whole
    assert "yield thing.name" in whole
    assert "return self.name.upper()" in whole


def test_a_lab_that_stands_on_an_earlier_one_is_refused() -> None:
    with pytest.raises(CourseError, match="Lab 1.2 needs Thing of lab 1.1") as caught:
        add("", "1.2")
    assert "Nothing was written" in str(caught.value)


def test_signatures_bring_no_helper_with_its_body() -> None:
    assert "LIMIT" not in add("", "1.1", cut=True)
    assert "LIMIT = 3" in add("", "1.1")


def test_what_was_laid_and_what_was_kept_is_told() -> None:
    mine = "def each(things):\n    return things\n"
    laid = insertion.add(mine, TARGET, OWNERS, "1.1", cut=False)
    assert laid.names == ("Thing",)
    assert laid.kept == ("each",)


def test_imports_are_merged_sorted_and_grouped() -> None:
    mine = "from pi_course.wire import parse\nfrom collections.abc import Iterator\nimport json\n"
    assert add(mine, "1.1").startswith(
        "from __future__ import annotations\n"
        "\n"
        "import json\n"
        "from collections.abc import Iterator, Sequence\n"
        "from dataclasses import dataclass\n"
        "\n"
        "from pi_course.wire import parse\n"
    )


def test_imports_beside_a_comment_stay_where_they_are() -> None:
    mine = "import json  # for later\nimport ast\n"
    after = add(mine, "1.1")
    assert "import json  # for later\nimport ast\n" in after
    compile(after, "after", "exec")


def test_adding_twice_changes_nothing() -> None:
    once = add("", "1.1")
    assert add(once, "1.1") == once


def test_a_hint_holds_the_labs_own_definitions() -> None:
    whole = insertion.listing(TARGET, OWNERS, "1.3", given=frozenset({"LIMIT"}))
    assert "return self.items.pop(0)" in whole
    assert "Lab 1.2" in whole, "the rest of a shared class is cut"
    assert "class Thing" not in whole
    cut = symbols.signatures(TARGET, OWNERS, "1.1")
    assert "upper" not in cut
    assert "def each(things: Sequence[Thing]) -> Iterator[str]:" in cut


OVERLOADED = dedent('''\
    from typing import overload


    # One way or the other.
    @overload
    def twice(value: int) -> int: ...


    @overload
    def twice(value: str) -> str: ...


    def twice(value: int | str) -> int | str:
        return value * 2


    class Shelf:
        @overload
        def at(self, place: int) -> str: ...

        @overload
        def at(self, place: str) -> int:
            """The place of a name."""
            ...

        def at(self, place: int | str) -> str | int:
            return place

        @property
        def label(self) -> str:
            return "top"

        @label.setter
        def label(self, text: str) -> None:
            print(text)
    ''')
OVERLOADED_OWNERS = {"twice": "1.1", "Shelf": "1.1"}


def lay_overloaded(source: str, *, cut: bool = False) -> str:
    return insertion.add(source, OVERLOADED, OVERLOADED_OWNERS, "1.1", cut=cut).source


def test_overloads_and_their_function_are_one_definition() -> None:
    assert names_of(OVERLOADED) == ["twice", "Shelf", "Shelf.at", "Shelf.label"]
    cut = symbols.starter(OVERLOADED, OVERLOADED_OWNERS)
    assert cut.count("@overload\n") == 4
    assert cut.count('raise NotImplementedError("Lab 1.1: twice()")') == 1
    assert "value * 2" not in cut
    shown = symbols.signatures(OVERLOADED, OVERLOADED_OWNERS, "1.1")
    assert "..." in shown and "\n\n\n\n" not in shown
    assert shown.count("def twice") == 3


@pytest.mark.parametrize(
    "mine",
    [
        "",
        symbols.starter(OVERLOADED, OVERLOADED_OWNERS),
        "def twice(value):\n    raise NotImplementedError\n",
    ],
    ids=["nothing", "starter", "stub-without-overloads"],
)
def test_overloads_are_laid_once_and_together(mine: str) -> None:
    laid = lay_overloaded(mine)
    assert ast.dump(ast.parse(laid)) == ast.dump(ast.parse(OVERLOADED))
    assert laid.count("# One way or the other.") == 1
    assert lay_overloaded(laid) == laid


def test_signatures_with_overloads_are_laid_once_and_then_filled() -> None:
    cut = lay_overloaded("", cut=True)
    assert cut.startswith("from typing import overload\n")
    assert cut.count("def twice") == 3
    assert lay_overloaded(cut, cut=True) == cut
    assert ast.dump(ast.parse(lay_overloaded(cut))) == ast.dump(ast.parse(OVERLOADED))


def test_overloads_that_the_learner_wrote_stay() -> None:
    mine = OVERLOADED.replace("value * 2", "value + value").replace('"top"', '"bottom"')
    assert lay_overloaded(mine) == mine


def test_an_untouched_file_of_starters_is_named_once(fake_course: Path, tmp_path: Path) -> None:
    two = checkpoint.find("2")
    start = two.folder / "parent/pi_course/greet.py"
    stub = "def {0}():\n    raise NotImplementedError('Lab 2.1: {0}()')\n"
    start.write_text(stub.format("bye") + stub.format("wave"), encoding="utf-8")
    greet = tmp_path / "pi_course/greet.py"
    greet.parent.mkdir()
    greet.write_bytes(start.read_bytes())
    assert symbols.missing(two, tmp_path) == ("pi_course/greet.py is still the starter",)
    greet.write_text("def bye(): ...\n" + stub.format("wave"), encoding="utf-8")
    assert symbols.missing(two, tmp_path) == ("pi_course/greet.py: wave() is still the starter",)
