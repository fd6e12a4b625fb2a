"""A failed test as facts a learner can use: called, expected, got, where.

Nothing here trusts a learner's value: its repr may raise, be huge, or exit.
"""

from __future__ import annotations

import ast
import linecache
import re
import reprlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from pi_course_kit.audit import KitRefused
from pi_course_kit.limits import TimeIsUp
from pi_course_kit.reach import DEBUGGER

SHOWN = 300  # characters of a value
ASSERT_LINES = 5  # of pytest's explanation of an assert without a comparison
BEFORE = 100  # of them, what stands before the first difference
PYDANTIC_LINK = re.compile(r"\n +For further information visit https://errors\.pydantic\.dev\S*")

DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Frame = tuple[CodeType, int]


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 8
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 40
        self.maxstring = self.maxlong = self.maxother = 8000

    def repr_instance(self, x: Any, level: int) -> str:
        # The inherited one hides that a __repr__ failed.
        try:
            text = repr(x)
        except TimeIsUp:
            raise
        except BaseException as error:  # it may also call sys.exit()
            return f"<{type(x).__name__}: its repr raised {type(error).__name__}>"
        return text if len(text) <= self.maxother else text[: self.maxother] + "…"


def show(value: object) -> str:
    """A repr of at most some thousand characters, whatever the value does."""
    try:
        return _Short().repr(value)
    except TimeIsUp:
        raise
    except BaseException as error:
        return f"<{type(value).__name__}: its repr raised {type(error).__name__}>"


def show_pair(left: object, right: object) -> tuple[str, str]:
    """Both reprs, cut to a window around their first difference."""
    mine, theirs = show(left), show(right)
    same = zip(mine, theirs, strict=False)
    first = next((i for i, (a, b) in enumerate(same) if a != b), min(len(mine), len(theirs)))
    if max(len(mine), len(theirs)) <= SHOWN:
        first = 0
    return _window(mine, first), _window(theirs, first)


def _window(text: str, around: int) -> str:
    start = max(0, around - BEFORE)
    end = start + SHOWN
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


class Explainer:
    """Explains failures of tests in one folder of learner code."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)

    def explain(
        self, error: BaseException, test: ast.AST | None, test_file: str, compared: tuple[str, ...]
    ) -> dict[str, Any]:
        """The facts of one failure; `compared` is (op, left, right) of the failing assert."""
        frames = list(_frames(error.__traceback__))
        called, expected = _call(frames, test, test_file)
        facts: dict[str, Any] = {
            "type": _kind(error),
            "message": self.message(error),
            "called": called,
            "expected": expected,
            "got": None,
            **self._where(error),
        }
        if facts["where"] is None and called is not None and test is not None:
            facts["where"] = self._definition(called, test)
        if isinstance(error, AssertionError) and compared:
            operator, left, right = compared
            facts["got"] = left
            facts["expected"] = right if operator == "==" else f"{operator} {right}"
            facts["message"] = facts["message"].partition("\n")[0]
        elif facts["message"].startswith(f"{type(error).__name__}:"):
            facts["got"] = f"{type(error).__name__} raised"
        return facts

    def message(self, error: BaseException) -> str:
        """One sentence for what happened."""
        match error:
            case KitRefused():
                return str(error)
            case ModuleNotFoundError(name=str(name)) if name.startswith("pi_course"):
                return _missing_module(error, name)
            case ImportError() if named := _missing_name(error):
                return named
            case AttributeError() if named := _missing_attribute(str(error)):
                return named
            case SyntaxError(filename=str(filename)):
                return f"{self.short(filename)}:{error.lineno} is not valid Python: {error.msg}"
            case NotImplementedError() if _text(error).startswith("Lab "):
                return f"{_text(error).partition(': ')[2] or error} is still the starter"
            case AssertionError():
                return "\n".join(_text(error).split("\n")[:ASSERT_LINES]) or "an assert failed"
            case _:
                return _special(error) or f"{type(error).__name__}: {_text(error)}".rstrip(": ")

    def _where(self, error: BaseException) -> dict[str, str | None]:
        """The deepest line of the learner's in the traceback, or in what led to the error."""
        if isinstance(error, SyntaxError) and error.filename:
            code = (error.text or "").strip() or None
            return {"where": f"{self.short(error.filename)}:{error.lineno}", "code": code}
        cause: BaseException | None = error
        seen: set[int] = set()
        while cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            mine = [f for f in _frames(cause.__traceback__) if self.is_mine(f[0].co_filename)]
            if mine:
                code, line = mine[-1]
                text = linecache.getline(code.co_filename, line).strip() or None
                return {"where": self.place(code, line), "code": text}
            cause = cause.__cause__ or cause.__context__
        return {"where": None, "code": None}

    def _definition(self, called: str, test: ast.AST) -> str | None:
        """Where the first of the learner's names in a call is defined."""
        origins = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(test)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        for word in re.findall(r"\w+", called):
            module, name = origins.get(word, ("", ""))
            file = getattr(sys.modules.get(module), "__file__", None) or ""
            if not self.is_mine(file):
                continue
            for node in ast.parse(Path(file).read_bytes()).body:
                if isinstance(node, DEFINITION) and node.name == name:
                    return f"{self.short(file)}:{node.lineno} {name}"
        return None

    def place_of(self, frame: FrameType | None) -> str:
        """Where a running frame is in the learner's code; "" when it is not in it."""
        while frame is not None:
            if self.is_mine(frame.f_code.co_filename):
                return self.place(frame.f_code, frame.f_lineno)
            frame = frame.f_back
        return ""

    def place(self, code: CodeType, line: int) -> str:
        function = "" if code.co_name == "<module>" else f" in {code.co_qualname}"
        return f"{self.short(code.co_filename)}:{line}{function}"

    def is_mine(self, filename: str) -> bool:
        return filename.startswith(self._root)

    def short(self, filename: str) -> str:
        if self.is_mine(filename):
            return Path(filename).relative_to(self._root).as_posix()
        return filename


def _frames(trace: TracebackType | None) -> Iterator[Frame]:
    for frame, line in traceback.walk_tb(trace):
        yield frame.f_code, line


def _is_pytest(error: BaseException) -> bool:
    return type(error).__module__.startswith("_pytest.")


def _text(error: BaseException) -> str:
    try:
        text = str.__getitem__(str(error), slice(4000))  # plain, whatever class of texts it is
    except Exception as worse:  # a learner's __str__
        return f"<its str raised {type(worse).__name__}>"
    return PYDANTIC_LINK.sub("", text)


def _kind(error: BaseException) -> str:
    """The class by its name; one of the learner's is never taken for the real Exit or Skipped."""
    name, module = type(error).__name__, type(error).__module__
    return f"{module}.{name}" if module.startswith("pi_course.") else name


def _special(error: BaseException) -> str | None:
    """What is no ordinary failure of a test, in a learner's words."""
    match _kind(error):
        case "MemoryError":
            return "your code asked for more memory than check allows"
        case "SystemExit" if isinstance(error, SystemExit):
            return f"your code called sys.exit({show(error.code)})"
        case "NoDebugger":
            return f"breakpoint() can't be used under check: {DEBUGGER}"
        case "KeyboardInterrupt":
            return "your code raised KeyboardInterrupt"
        case "Skipped":
            return "your code skipped the test with pytest.skip()"
        case "XFailed":
            return "your code called pytest.xfail()"
        case "Exit":
            return "your code called pytest.exit()"
        case _:
            return _text(error) if _is_pytest(error) else None


def _missing_module(error: ModuleNotFoundError, name: str) -> str:
    text = _text(error)
    if " is not in " not in text:
        return text
    origin = text.partition("; ")[2].rstrip(".")
    return f"{name.replace('.', '/')}.py is missing" + (f" ({origin})" if origin else "")


def _missing_name(error: ImportError) -> str | None:
    found = re.match(
        r"cannot import name '(\w+)' from (partially initialized module )?", str(error)
    )
    module = error.name or ""
    if found is None or not module.startswith("pi_course"):
        return None
    stem = module.replace(".", "/")
    if (error.path or "").endswith("__init__.py"):
        return f"{stem}/{found[1]}.py is missing"
    circle = " yet: the modules import each other in a circle" if found[2] else ""
    return f"{stem}.py has no {found[1]}{circle}"


def _missing_attribute(text: str) -> str | None:
    match = re.match(r"module '(pi_course\S*)' has no attribute '(\w+)'", text)
    return f"{match[1].replace('.', '/')}.py has no {match[2]}" if match else None


def function_of(tree: ast.AST, name: str) -> ast.AST | None:
    for node in ast.walk(tree):
        if isinstance(node, DEFINITION) and node.name == name:
            return node
    return None


def _call(
    frames: list[Frame], test: ast.AST | None, test_file: str
) -> tuple[str | None, str | None]:
    """What the test called, as its source says it, and what it expected if that is text too."""
    if not isinstance(test, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None, None
    lines = [
        line
        for code, line in frames
        if code.co_filename == test_file and test.lineno <= line <= (test.end_lineno or 0)
    ]
    statement = _statement(test, lines[-1]) if lines else None
    match statement:
        case None | ast.Import() | ast.ImportFrom():
            return None, None
        case ast.Assert(test=ast.Compare(left=left)):
            return _call_text(left, test, statement), None
        case ast.Assert(test=asserted):
            return _call_text(asserted, test, statement), "true"
        case ast.With(items=[item, *_], body=body) | ast.AsyncWith(items=[item, *_], body=body):
            return _unparse(body[-1]), _unparse(item.context_expr)
        case ast.Assign(value=value) | ast.Expr(value=value):
            return _unparse(value), None
        case _:
            return _unparse(statement), None


def _statement(test: ast.AST, line: int) -> ast.stmt | None:
    """The innermost statement on a line."""
    found: ast.stmt | None = None
    for node in ast.walk(test):
        if (
            isinstance(node, ast.stmt)
            and node is not test
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            and (found is None or node.lineno >= found.lineno)
        ):
            found = node
    return found


def _call_text(expression: ast.expr, test: ast.AST, statement: ast.stmt) -> str:
    """The expression; for a name, the expression last assigned to it above the statement."""
    if isinstance(expression, ast.Name):
        for node in sorted(
            (node for node in ast.walk(test) if isinstance(node, ast.Assign)),
            key=lambda node: node.lineno,
            reverse=True,
        ):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if node.lineno < statement.lineno and expression.id in names:
                return _unparse(node.value)
    return _unparse(expression)


def _unparse(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
