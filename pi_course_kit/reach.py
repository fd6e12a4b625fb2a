"""Names in learner code that no chapter needs, and that lead from the code to what judges it.

Each file is looked at right before it runs, on the bytes that run. An honest file has such a name
by accident, `import pytest` most of all, so the sentence names the line and says what to do.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from typing import Any

TESTS = "the tests are the course's own, and no chapter's code needs them"
NEEDLESS = "no chapter needs it, and what reaches into the check itself can't be judged by it"
DEBUGGER = "nobody is there to type; use print()"

MODULES = {
    **dict.fromkeys(("pytest", "_pytest", "pluggy"), TESTS),
    **dict.fromkeys(
        (
            "__main__ builtins gc ctypes _ctypes importlib _imp runpy marshal bdb multiprocessing "
            "_posixsubprocess _interpreters _xxsubinterpreters pkgutil pydoc"
        ).split(),
        NEEDLESS,
    ),
    "pdb": DEBUGGER,
}
OF_SYS = {"modules", "monitoring"}  # common words, that count only of sys
FRAMES = frozenset("tb_frame gi_frame cr_frame ag_frame".split())  # audited as well
ATTRIBUTES = FRAMES | set(
    "f_back f_locals f_globals currentframe walk_tb walk_stack "
    "getargvalues getinnerframes getouterframes getclosurevars getmodule get_stack "
    "getgeneratorlocals getcoroutinelocals "
    "__code__ __globals__ __closure__ __subclasses__ __loader__ __spec__ __builtins__ "
    "meta_path path_hooks settrace setprofile addaudithook "
    "_getframe _current_frames _current_exceptions _interpreters".split()
)
NAMES = {"__loader__", "__spec__", "__builtins__", "__import__"}
WORDS = re.compile(rf"\b({'|'.join({*MODULES, *OF_SYS, *ATTRIBUTES, *NAMES})})\b")


def reached(data: bytes, file: str) -> str | None:
    """The first such name in a file, as the end of a sentence that begins with "your code"."""
    try:
        text = importlib.util.decode_source(data)
        # Most files have none of these words. A name in other letters may be one all the same.
        if text.isascii() and not WORDS.search(text):
            return None
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # running the file says it, and says it better
    nodes: list[Any] = list(ast.walk(tree))
    sys = {"sys", *_names_of_sys(nodes)}
    found = sorted((int(node.lineno), what) for node in nodes for what in _what(node, sys))
    if not found:
        return None
    line, what = found[0]  # the first one in the file
    why = MODULES.get(what.removeprefix("imports "), NEEDLESS)
    return f"{what} at {file}:{line}: {why}. Take that out"


def _names_of_sys(nodes: list[Any]) -> Iterator[str]:
    """What else the file calls it: s after `import sys as s`."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (
                alias.asname for alias in node.names if alias.name == "sys" and alias.asname
            )


def _what(node: Any, sys: set[str]) -> Iterator[str]:
    """How a statement or expression uses such a name; `sys` are the names of that module."""
    match node:
        case ast.Import(names=imported):
            roots = [alias.name.partition(".")[0] for alias in imported]
            yield from (f"imports {root}" for root in roots if root in MODULES)
        case ast.ImportFrom(module=str(module), level=0, names=imported):
            root = module.partition(".")[0]
            if root in MODULES:
                yield f"imports {root}"
            banned = ATTRIBUTES | OF_SYS if root == "sys" else ATTRIBUTES
            yield from (f"uses {root}.{alias.name}" for alias in imported if alias.name in banned)
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name) if (
            owner in sys and name in ATTRIBUTES | OF_SYS
        ):
            yield f"uses sys.{name}"
        case ast.Attribute(attr=name) if name in ATTRIBUTES:
            yield f"uses {name}"
        case ast.Name(id=name) if name in NAMES:
            yield f"uses {name}"
        case ast.Constant(value=str(name)) if name in ATTRIBUTES:
            yield f"uses {name}"
        case _:
            pass
