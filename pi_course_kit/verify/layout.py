"""Rules over a chapter's files: what the manifest says, what lies there, what is derived."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pi_course_kit import snapshot, symbols, sync
from pi_course_kit.errors import CourseError
from pi_course_kit.verify import sources
from pi_course_kit.verify.case import Case
from pi_course_kit.verify.rule import Finding, Rule, both, put, rebuilt, swap

VERSIONS = 3


def manifest(case: Case) -> Iterator[Finding]:
    from pi_course_kit.manifest import validate

    try:
        validate(case.chapter.folder)
    except CourseError as error:
        yield Finding(str(error).partition("\n  ")[2] or str(error), case.name(case.toml), "")


def files(case: Case) -> Iterator[Finding]:
    """What the manifest lists is there, and nothing else is."""
    chapter, where = case.chapter, case.name(case.chapter.folder)
    given = [path for path in chapter.given if ":" not in path]
    target = sources.tree(chapter.folder / "target")
    parent = sources.tree(chapter.folder / "parent")
    tests = [path for path in parent if path.startswith("tests/") and path.endswith(".py")]
    package = {"pi_course/__init__.py", "pi_course/errors.py"} if case.number == 0 else set[str]()
    for path in sorted({*chapter.files, *given} - set(target)):
        yield Finding(f"{path} is listed but not in target/", where, "Add it or correct the list.")
    for path in sorted(set(target) - {*chapter.files, *given} - package):
        if not path.endswith("/__init__.py"):
            yield Finding(f"target/{path} is in no list", where, "List it in `files` or `given`.")
    if tests != [f"tests/{chapter.test_name}"]:
        there = ", ".join(tests) or "nothing"
        yield Finding(
            f"parent/tests/ holds {there}, not {chapter.test_name} alone",
            where,
            "A chapter has one test file, named after its folder.",
        )
    for needed in chapter.requires:
        if needed not in {other.nn for other in case.course.chapters if other.number < case.number}:
            yield Finding(f"it requires chapter {needed}, which is not before it", where, "")
    for path in chapter.deletions:
        if path not in snapshot.snapshot_files(case.number - 1):
            yield Finding(
                f"it deletes {path}, which chapter {case.number - 1:02d} lacks", where, ""
            )


def pins(case: Case) -> Iterator[Finding]:
    """The collected ids are those of the labs; none is skipped; there is at least one."""
    where = case.name(case.test)
    pinned, result = set(case.chapter.tests), case.target
    if result.error is not None:
        yield Finding(result.error, where, "Imports of pi_course belong inside the tests.")
        return
    collected = {test.id for test in result.tests if test.file == case.chapter.test_name}
    absent = {test.id for test in result.tests if test.message.startswith("the course's tests")}
    if not collected - absent:
        yield Finding("no test was collected", where, "A chapter without a test proves nothing.")
    for name in sorted(absent):
        yield Finding(f"{name} is pinned and not there", where, "Correct the id in a lab's steps.")
    for name in sorted(collected - pinned):
        yield Finding(f"{name} is in no lab", where, "Put its id into a step in checkpoint.toml.")
    for test in result.tests:
        if test.type in ("Skipped", "XFailed"):
            yield Finding(
                f"{test.id} skips itself", where, "A focused test is run or is not there."
            )


def tests_form(case: Case) -> Iterator[Finding]:
    """Read off the text: what a learner reads in each test, and that it can fail."""
    where, text = case.name(case.test), sources.read(case.test)
    module = sources.parsed(text)
    if module is None:
        yield Finding("it is not valid Python", where, "")
        return
    checks = {
        node.name for node in module.body if isinstance(node, sources.Function) and _asserts(node)
    }
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            line = ast.unparse(node)
            if "pi_course" in line.replace("pi_course_kit", ""):
                yield Finding(
                    f"line {node.lineno} imports the learner's code for all tests",
                    where,
                    "Import inside each test, so that one missing name fails one test.",
                )
        if not isinstance(node, sources.Function) or not node.name.startswith("test"):
            continue
        if not (ast.get_docstring(node) or "").strip():
            yield Finding(f"{node.name} has no docstring", where, "One line: the behaviour.")
        calls = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if not _asserts(node) and not calls & (checks - {node.name}):
            yield Finding(f"{node.name} asserts nothing", where, "Assert what it says it shows.")
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr in ("skip", "skipif", "xfail"):
            yield Finding(f"line {node.lineno} skips or forgives a test", where, "Take it out.")


def _asserts(node: ast.AST) -> bool:
    return any(
        isinstance(child, ast.Assert)
        or (isinstance(child, ast.Attribute) and child.attr in ("raises", "fail"))
        for child in ast.walk(node)
    )


def chain(case: Case) -> Iterator[Finding]:
    """The practice folder is the snapshot before, byte for byte, plus what parent/ declares."""
    chapter, where = case.chapter, case.name(case.chapter.folder)
    expected = range(len(case.course.chapters))
    if case.number not in expected and case.course.chapters[0].number == 0:
        yield Finding("a chapter before it is missing", where, "Number chapters without a gap.")
    declared = {*chapter.files, *(path for path in chapter.given if ":" not in path)}
    made = {p: f for p, f in sources.tree(case.practice).items() if p.startswith("pi_course/")}
    if chapter.mode == "observe":
        wanted, name = dict(snapshot.snapshot_files(case.number)), "target"
    else:
        wanted, name = dict(snapshot.snapshot_files(case.number - 1)), "parent"
        made = {path: file for path, file in made.items() if path not in declared}
        wanted = {path: file for path, file in wanted.items() if path not in declared}
        for path in chapter.deletions:
            wanted.pop(path, None)
    if snapshot.digest(made) != snapshot.digest(wanted):
        other = sorted(
            path
            for path in {*made, *wanted}
            if path not in made
            or path not in wanted
            or made[path].read_bytes() != wanted[path].read_bytes()
        )
        yield Finding(
            f"the practice folder differs from its {name} digest in {', '.join(other)}",
            where,
            "parent/ may hold starters of `files` and whole files of `given`, nothing else.",
        )
    if snapshot.parent_digest(case.number) not in sources.read(case.practice / ".pi-course.json"):
        yield Finding("the marker names another parent digest", where, "")


def fresh(case: Case) -> Iterator[Finding]:
    """Starters and given files equal what the target gives today."""
    parent = case.chapter.folder / "parent"
    wanted = sync.starters(case.chapter)
    for path, data in wanted.items():
        if not path.is_file():
            yield Finding("it is missing", case.name(path), "Run `pi-course dev sync`.")
        elif path.read_bytes() != data:
            yield Finding("it is stale", case.name(path), "Run `pi-course dev sync`.")
    for path in sources.tree(parent):
        if (
            path.startswith("pi_course/")
            and path in case.chapter.files
            and parent / path not in wanted
        ):
            yield Finding(
                "a teaching file lies in parent/ of a chapter without starters",
                case.name(parent / path),
                "Remove it, or set starters = true.",
            )


def package(case: Case) -> Iterator[Finding]:
    """pi_course/ is the last snapshot."""
    shipped = {
        f"pi_course/{path}": file
        for path, file in sources.tree(case.course.package).items()
        if path.endswith(".py")
    }
    composed = snapshot.snapshot_files(case.number)
    wrong = {
        "lacks": sorted(composed.keys() - shipped.keys()),
        "has in excess": sorted(shipped.keys() - composed.keys()),
        "has another text of": [
            path
            for path in sorted(shipped.keys() & composed.keys())
            if shipped[path].read_bytes() != composed[path].read_bytes()
        ],
    }
    for what, paths in wrong.items():
        if paths:
            yield Finding(
                f"it {what} {', '.join(paths)}", "pi_course/", "Run `pi-course dev sync`."
            )


def owned(case: Case) -> Iterator[Finding]:
    """Each new or changed top-level name has one owner, and each symbol exists."""
    for file in case.chapter.files:
        text, where = case.target_text(file), f"{case.name(case.toml)}, {file}"
        before = _segments(case.before_text(file))
        owners, given = symbols.owners(case.chapter, file), symbols.given(case.chapter, file)
        there = set(symbols.names(text))
        for name in sorted({*owners, *given} - there):
            yield Finding(f"{name} is listed and not in the target", where, "Correct the symbol.")
        tops = {symbol.split(".")[0] for symbol in owners}
        for name, segment in _segments(text).items():
            if name in tops and name in given:
                yield Finding(f"{name} is given and a lab's", where, "It can have one owner.")
            if name not in tops and name not in given and before.get(name) != segment:
                yield Finding(
                    f"{name} belongs to no lab",
                    where,
                    f'Add "{file}:{name}" to the symbols of a lab, or to `given`.',
                )


def _segments(text: str) -> dict[str, str]:
    module = sources.parsed(text)
    return {
        name: ast.unparse(node)
        for node in (module.body if module else ())
        for name in sources.defined(node)
        if not isinstance(node, ast.If)
    }


def versions(case: Case) -> Iterator[Finding]:
    """A file that many chapters replace makes each fix many fixes."""
    reason = case.chapter.folder / "checkpoint.toml"
    for file in sources.tree(case.chapter.folder / "target"):
        having = [
            other.nn
            for other in case.course.chapters
            if other.number <= case.number and (other.folder / "target" / file).is_file()
        ]
        if len(having) > VERSIONS and f"# {file}: " not in sources.read(reason):
            yield Finding(
                f"{file} has {len(having)} versions (chapters {', '.join(having)})",
                case.name(reason),
                f"Let the chapter add a file, or say why not: a line `# {file}: the reason`.",
            )


def _last(case: Case) -> bool:
    return case.chapter is case.course.chapters[-1]


def _late_greet(course: Path) -> None:
    """Two chapters more, so that greet.py has four versions."""
    from pi_course_kit.verify import sample

    sample.add_chapter(course, 3, "wave", "'wave'")
    sample.add_chapter(course, 4, "nod", "'nod'")


def _rename_test(course: Path) -> None:
    tests = course / BYE / "parent/tests"
    (tests / "test_02_bye.py").rename(tests / "test_bye.py")


def _solve(course: Path) -> None:
    solved = (course / BYE / "target/pi_course/greet.py").read_bytes()
    (course / BYE / "parent/pi_course/greet.py").write_bytes(solved)


HELLO = "checkpoints/01-hello"
SKIP = '@pytest.mark.skip(reason="later")\ndef test_bye_twice'
BYE = "checkpoints/02-bye"
TEST_BYE = f"{BYE}/parent/tests/test_02_bye.py"
LIMIT = ("class NamelessError", "LIMIT = 3\n\n\nclass NamelessError")

RULES = (
    Rule(
        "manifest",
        "checkpoint.toml has every field, of the right type, and no other.",
        manifest,
        swap(f"{HELLO}/checkpoint.toml", "minutes = 10", 'minutes = 10\nmood = "fine"'),
    ),
    Rule(
        "files",
        "The manifest's files are there, and no others; one test file, named after the chapter.",
        files,
        put(f"{HELLO}/target/pi_course/spare.py", '"""In no list."""\n'),
        more={"renamed-test": _rename_test},
    ),
    Rule(
        "pins",
        "The collected test ids are those that the labs list, each runs, and there is one.",
        pins,
        swap(TEST_BYE, "def test_bye_name", "def test_bye_full_name"),
        needs=("files", "tests"),
        more={"none": put(TEST_BYE, '"""No test."""\n')},
    ),
    Rule(
        "tests",
        "Each focused test says what it shows, can fail, and imports inside its function.",
        tests_form,
        both(
            swap(TEST_BYE, 'assert bye("Bo") == "bye Bo"', 'bye("Bo")'),
            swap(TEST_BYE, 'assert bye("") == "bye"', 'bye("")'),
        ),
        needs=("files",),
        more={
            "skip": both(
                swap(TEST_BYE, "def test_bye_twice", SKIP),
                swap(
                    TEST_BYE,
                    '"""The focused test."""\n',
                    '"""The focused test."""\n\nimport pytest\n',
                ),
            ),
        },
    ),
    Rule(
        "chain",
        "A practice folder is the snapshot before, plus the declared starters and given files.",
        chain,
        put(f"{BYE}/parent/pi_course/errors.py", "class PiError(Exception): ...\n"),
        needs=("files",),
    ),
    Rule(
        "fresh",
        "Starters and given files equal what is cut from the target today.",
        fresh,
        swap(f"{BYE}/parent/pi_course/words.py", "Words", "Old words"),
        needs=("files",),
        applies=rebuilt,
        settled=True,
        more={"solved-parent": _solve},
    ),
    Rule(
        "package",
        "pi_course/ is the last snapshot, byte for byte.",
        package,
        swap("pi_course/words.py", "Words", "Other words"),
        needs=("files",),
        applies=_last,
        settled=True,
    ),
    Rule(
        "owned",
        "Every new top-level name of a teaching file belongs to one lab or is given.",
        owned,
        both(
            swap(f"{HELLO}/target/pi_course/greet.py", *LIMIT),
            swap(f"{BYE}/target/pi_course/greet.py", *LIMIT),
        ),
        needs=("files",),
        applies=rebuilt,
    ),
    Rule(
        "versions",
        f"A file is replaced by at most {VERSIONS - 1} later chapters, or the manifest says why.",
        versions,
        _late_greet,
        needs=("files",),
    ),
)
