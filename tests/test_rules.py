"""Rules that no linter knows, kept over the whole repository; each is shown able to fail.

To add one: write a function that yields (line, what is wrong) for a file, put it into RULES
with the files it applies to, and plant a bad sample for it in PLANTED.
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from pi_course_kit import checkpoint, snapshot

ROOT = Path(__file__).resolve().parents[1]
RUNTIME_LINES, RUNTIME_MEDIAN, KIT_LINES, VERSIONS = 300, 150, 400, 3

Finding = tuple[int, str]


@dataclass(frozen=True)
class Rule:
    applies: Callable[[str], bool]
    find: Callable[[str, str], Iterator[Finding]]


# Which files


def is_python(path: str) -> bool:
    return path.endswith(".py")


def is_runtime(path: str) -> bool:
    """pi_course and every version of its modules in the checkpoints, starters included."""
    in_checkpoint = re.match(r"checkpoints/[^/]+/(target|parent)/pi_course/", path)
    return is_python(path) and (path.startswith("pi_course/") or in_checkpoint is not None)


def is_kit(path: str) -> bool:
    return is_python(path) and path.startswith("pi_course_kit/")


def is_shipped(path: str) -> bool:
    return is_runtime(path) or is_kit(path) or (is_python(path) and path.startswith("checkpoints/"))


def anything(path: str) -> bool:
    return True


# Rules about code


def calls(text: str) -> Iterator[tuple[str, str, ast.Call]]:
    """Every call in the text: what it is called on ("" for a bare name), its name, the call."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name):
                    yield "", name, node
                case ast.Attribute(value=owner, attr=name):
                    yield ast.unparse(owner), name, node
                case _:
                    pass


def cuts_lines(path: str, text: str) -> Iterator[Finding]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in {"splitlines", "iter_lines"}:
            yield (
                node.lineno,
                f'{node.attr} also cuts at U+2028, U+0085, \\x0b, \\x0c: split("\\n")',
            )


MODE = re.compile("[rwaxbt+]+")


def text_mode(owner: str, name: str, call: ast.Call) -> str | None:
    """The mode of a call that opens a text file; None for any other call.

    x.open(y) is a file's only if y looks like a mode: os.open, webbrowser.open and our own
    open() methods are something else.
    """
    if name in {"read_text", "write_text"}:
        return name[0]
    if name != "open":
        return None
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    given += call.args[1 if owner in {"", "io"} else 0 :][:1]
    written = given[0].value if given and isinstance(given[0], ast.Constant) else None
    if owner in {"", "io"}:
        mode = "r" if not given else str(written or "w")
    elif not call.args:
        mode = str(written or "r")
    else:
        mode = written if isinstance(written, str) and MODE.fullmatch(written) else "b"
    return None if "b" in mode else mode


def opens_unclearly(path: str, text: str) -> Iterator[Finding]:
    for owner, name, call in calls(text):
        mode = text_mode(owner, name, call)
        named = {keyword.arg for keyword in call.keywords}
        if mode is None or None in named:
            continue
        by_place = {"read_text": 1, "write_text": 2}.get(name, 99)
        if "encoding" not in named and len(call.args) < by_place:
            yield call.lineno, f"{name} without encoding= depends on the machine"
        if set(mode) & set("wax+") and "newline" not in named:
            yield call.lineno, f'{name} without newline= writes \\r\\n on Windows: newline="\\n"'


def imported(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, dotted origin and local name of everything that is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origin = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                yield node.lineno, origin, alias.asname or alias.name


def imports_strangers(path: str, text: str) -> Iterator[Finding]:
    known = sys.stdlib_module_names | {"pi_course", "pydantic", "httpx"}
    for line, origin, _ in imported(ast.parse(text)):
        package = origin.partition(".")[0]
        if package == "":
            yield line, "a relative import: write from pi_course.module import name"
        elif package not in known:
            yield line, f"the runtime imports {package}: it needs pydantic, httpx and nothing else"


def mocks(path: str, text: str) -> Iterator[Finding]:
    for line, origin, _ in imported(ast.parse(text)):
        if origin.startswith("unittest.mock"):
            yield line, f"{origin}: pass a scripted model, a fake clock or a file system in"


def sleeps(path: str, text: str) -> Iterator[Finding]:
    tree = ast.parse(text)
    lines = [line for line, origin, _ in imported(tree) if origin == "time.sleep"]
    lines += [
        call.lineno for owner, name, call in calls(text) if (owner, name) == ("time", "sleep")
    ]
    for line in lines:
        yield line, "time.sleep blocks the event loop: await the clock that is passed in"


def root_name(target: ast.expr) -> str | None:
    """The name that an assignment to x.a, x.a[i] or x.a.b reaches into; None for a plain x."""
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return None
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def patches(path: str, text: str) -> Iterator[Finding]:
    tree = ast.parse(text)
    names = {name for _, _, name in imported(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                pass
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                targets = [target]
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name() as owner, *_]):
                targets = [ast.Attribute(owner, "", ast.Store())]
            case _:
                continue
        for target in targets:
            if (owner := root_name(target)) in names:
                yield node.lineno, f"changes {owner}, which belongs to another module"


# Rules about names and sizes

EMPTY_NOUNS = {"util", "utils", "helper", "helpers", "core", "manager", "common", "misc"}


def bears_stdlib_name(path: str, text: str) -> Iterator[Finding]:
    inside = PurePosixPath(path.partition("pi_course/")[2])
    for name in [*inside.parent.parts, inside.stem]:
        if name in sys.stdlib_module_names:
            yield (
                1,
                f"{name} is a module of the standard library: a terminal opened here imports it",
            )


def says_nothing(path: str, text: str) -> Iterator[Finding]:
    for part in PurePosixPath(path).with_suffix("").parts:
        if empty := EMPTY_NOUNS & set(part.split("_")):
            yield 1, f"{empty.pop()} is no noun of the field: name the module after what it holds"


def is_long(path: str, text: str) -> Iterator[Finding]:
    limit = KIT_LINES if is_kit(path) else RUNTIME_LINES
    if (lines := text.count("\n")) > limit:
        yield limit + 1, f"{lines} lines, and {limit} are the limit"


# Rules about any text. The patterns are put together here, so that this file holds none of them.

HOSTS = "|".join(
    re.escape(f"{name}.{ending}")
    for name, ending in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("debian", "org"),
        ("golang", "org"),
        ("crates", "io"),
    ]
)
NOT_COMMITTED = {
    "a registry's host": re.compile(rf"(?i)(?<![\w-])({HOSTS})\b"),
    "a registry's address": re.compile("(?i)index" + r"[-_]url|find" + r"[-_]links"),
    "a folder of one machine": re.compile(r"(?<![\w.~/|-])/(wo" + r"rk|ro" + r"ot)(?![\w-])"),
    "an emoji (where data needs four bytes take \U00020bb7 or write the escape)": re.compile(
        r"[\U0001f000-\U0001faff\ufe0f\u2705\u274c\u26a0\u2728\u2b50\u2757\u2714\u2716]"
    ),
}


def holds_what_stays_out(path: str, text: str) -> Iterator[Finding]:
    for number, line in enumerate(text.split("\n"), start=1):
        for what, pattern in NOT_COMMITTED.items():
            if found := pattern.search(line):
                yield number, f"{what}: {found[0]!r}"


RULES = {
    "lines are cut by an explicit rule": Rule(is_shipped, cuts_lines),
    "text files name encoding and newline": Rule(is_shipped, opens_unclearly),
    "the runtime imports pydantic, httpx and itself": Rule(is_runtime, imports_strangers),
    "nothing is mocked": Rule(is_python, mocks),
    "the runtime never sleeps": Rule(is_runtime, sleeps),
    "no module changes another one": Rule(is_runtime, patches),
    "no module bears a name of the standard library": Rule(is_runtime, bears_stdlib_name),
    "a module is a noun": Rule(lambda path: is_runtime(path) or is_kit(path), says_nothing),
    "modules are short": Rule(lambda path: is_runtime(path) or is_kit(path), is_long),
    "no host, no path of one machine, no emoji": Rule(anything, holds_what_stays_out),
}


@cache
def repository() -> dict[str, str]:
    """Path and text of every file that is or may be committed."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
            encoding="utf-8",
        )
        paths = [ROOT / name for name in sorted(set(listed.stdout.split("\0")) - {""})]
    else:
        paths = [path for path in ROOT.rglob("*") if not {".venv", "__pycache__"} & {*path.parts}]
    texts: dict[str, str] = {}
    for path in paths:
        if path.is_file() and path.suffix not in {".png", ".pyc"}:
            texts[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return texts


def findings(rule: Rule, files: dict[str, str]) -> list[str]:
    return [
        f"{path}:{line}: {problem}"
        for path, text in files.items()
        if rule.applies(path)
        for line, problem in rule.find(path, text)
    ]


@pytest.mark.parametrize("name", RULES)
def test_the_repository_keeps_the_rule(name: str) -> None:
    assert findings(RULES[name], repository()) == []


PLANTED = {
    "lines are cut by an explicit rule": [
        ("pi_course/sse.py", "lines = body.splitlines()\n"),
        ("pi_course_kit/sse.py", "read = response.iter_lines\n"),
    ],
    "text files name encoding and newline": [
        ("pi_course/a.py", "open(path)\n"),
        ("pi_course/a.py", "path.read_text()\n"),
        ("pi_course/a.py", "open(path, mode, encoding='utf-8')\n"),
        ("pi_course/a.py", "path.open()\n"),
        ("pi_course_kit/a.py", "path.open('a', encoding='utf-8')\n"),
        ("checkpoints/01-a/parent/tests/a.py", "path.write_text(text, encoding='utf-8')\n"),
    ],
    "the runtime imports pydantic, httpx and itself": [
        ("pi_course/a.py", "import pi_course_kit.cli\n"),
        ("pi_course/a.py", "from click import echo\n"),
        ("pi_course/a.py", "from . import loop\n"),
    ],
    "nothing is mocked": [
        ("tests/kit/test_a.py", "from unittest.mock import patch\n"),
        ("tests/kit/test_a.py", "from unittest import mock\n"),
    ],
    "the runtime never sleeps": [
        ("pi_course/a.py", "import time\ntime.sleep(1)\n"),
        ("checkpoints/01-a/target/pi_course/a.py", "from time import sleep\n"),
    ],
    "no module changes another one": [
        ("pi_course/a.py", "import os\nos.environ['A'] = 'b'\n"),
        ("pi_course/a.py", "from pi_course.loop import Loop\nLoop.run = run\n"),
        ("pi_course/a.py", "from pi_course.loop import Loop\nsetattr(Loop, 'run', run)\n"),
    ],
    "no module bears a name of the standard library": [
        ("pi_course/types.py", ""),
        ("checkpoints/03-a/target/pi_course/json/read.py", ""),
    ],
    "a module is a noun": [
        ("pi_course_kit/path_utils.py", ""),
        ("pi_course/core/loop.py", ""),
    ],
    "modules are short": [
        ("pi_course/loop.py", "pass\n" * (RUNTIME_LINES + 1)),
        ("pi_course_kit/cli.py", "pass\n" * (KIT_LINES + 1)),
    ],
    "no host, no path of one machine, no emoji": [
        ("a.md", "see https://py" + "pi.org/project\n"),
        ("a.cfg", "extra-index" + "-url = here\n"),
        ("a.txt", "--find" + "-links wheels\n"),
        ("a.ipynb", '"saved in /wo' + 'rk/main"\n'),
        ("a.py", "HOME = '/ro" + "ot'\n"),
        ("a.md", "done \N{WHITE HEAVY CHECK MARK}\n"),
    ],
}


@pytest.mark.parametrize("name", RULES)
def test_the_rule_catches_each_planted_sample(name: str) -> None:
    for path, sample in PLANTED[name]:
        assert len(findings(RULES[name], {path: sample})) == 1, sample


def test_rules_let_good_code_through() -> None:
    good = (
        "import os\n"
        "from pi_course.errors import PiError\n"
        "open(path, 'rb')\n"
        "path.open('w', encoding='utf-8', newline='\\n')\n"
        "path.read_text(encoding='utf-8')\n"
        "os.open(path, os.O_RDONLY)\n"
        "path.read_text('utf-8', 'replace')\n"
        "webbrowser.open(url)\n"
        "draft.open(block)\n"
        "self.count = 1\n"
        "values['a'] = 2\n"
        "lines = text.split('\\n')\n"
    )
    for name, rule in RULES.items():
        assert findings(rule, {"pi_course/framework/rootless.py": good}) == [], name


# Rules over several files


def long_median(sizes: list[int]) -> bool:
    return bool(sizes) and statistics.median(sizes) > RUNTIME_MEDIAN


def in_many_versions(targets: list[str]) -> list[str]:
    return [path for path, versions in Counter(targets).items() if versions > VERSIONS]


def test_half_of_the_runtime_modules_fit_one_sitting() -> None:
    files = repository().items()
    assert not long_median([t.count("\n") for p, t in files if p.startswith("pi_course/")])
    assert long_median([10, RUNTIME_MEDIAN + 1, RUNTIME_MEDIAN + 1])


def test_a_file_exists_in_few_versions() -> None:
    targets = [
        path.relative_to(chapter.folder / "target").as_posix()
        for chapter in checkpoint.checkpoints()
        for path in (chapter.folder / "target").rglob("*.py")
    ]
    assert in_many_versions(targets) == []
    assert in_many_versions(["pi_course/loop.py"] * (VERSIONS + 1)) == ["pi_course/loop.py"]


def test_pi_course_is_the_last_snapshot_byte_for_byte() -> None:
    last = checkpoint.checkpoints()[-1].number
    composed = {path: file.read_bytes() for path, file in snapshot.snapshot_files(last).items()}
    shipped = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in (ROOT / "pi_course").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    different = {path for path in {*shipped, *composed} if shipped.get(path) != composed.get(path)}
    assert different == set(), "run: pi-course dev sync"
