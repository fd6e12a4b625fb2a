"""Rule: nothing of chapter N uses what a later chapter brings, in code, tests or text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pi_course_kit import snapshot
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.verify import prose, sources
from pi_course_kit.verify.case import Case
from pi_course_kit.verify.rule import Finding, Rule, swap


@dataclass(frozen=True, slots=True)
class Later:
    """What chapters after N bring: module -> chapter, public name -> chapter, term -> chapter."""

    modules: dict[str, int]
    names: dict[str, int]
    terms: dict[str, int]


def later_than(number: int, chapters: tuple[Checkpoint, ...]) -> Later:
    """Names that some chapter up to N knows already, public or not, are left out."""
    known = _identifiers(number)
    terms_known = {t.term.lower() for c in chapters if c.number <= number for t in c.terms}
    modules: dict[str, int] = {}
    names: dict[str, int] = {}
    terms: dict[str, int] = {}
    here = {sources.module_name(path) for path in snapshot.snapshot_files(number)}
    for chapter in chapters:
        if chapter.number <= number:
            continue
        for path, file in snapshot.snapshot_files(chapter.number).items():
            if path.endswith(".py"):
                if sources.module_name(path) not in here:
                    modules.setdefault(sources.module_name(path), chapter.number)
                for name in sources.public_names(sources.read(file)):
                    if name not in known:
                        names.setdefault(name, chapter.number)
        for term in chapter.terms:
            if term.term.lower() not in terms_known:
                terms.setdefault(term.term, chapter.number)
    return Later(modules, names, terms)


@lru_cache(maxsize=64)
def _identifiers(number: int) -> frozenset[str]:
    """Every identifier, and every word that is a value, in package and tests up to a chapter."""
    found: set[str] = set()
    files = {**snapshot.snapshot_files(number), **snapshot.test_files(number)}
    for path, file in files.items():
        module = sources.parsed(sources.read(file)) if path.endswith(".py") else None
        for node in ast.walk(module) if module else ():
            found |= _named(node)
    return frozenset(found)


def _named(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.keyword(arg=str(name)) | ast.Constant(value=str(name)):
            return {name}
        case ast.alias(name=name, asname=other) if not name.startswith("pi_course"):
            return {name, other or name}
        case _:
            return set()


def distinctive(name: str) -> bool:
    """Whether a name in running text can only be meant as a name.

    Example:
        >>> [distinctive(name) for name in ("AgentContext", "text_of", "Start", "text", "_LIMIT")]
        [True, True, False, False, False]
    """
    humps = re.findall(r"[A-Z][a-z0-9]+", name)
    return ("_" in name.strip("_") or len(humps) > 1) and not name.startswith("_")


def later(case: Case) -> Iterator[Finding]:
    ahead = later_than(case.number, case.course.chapters)
    yield from _imports(case, ahead)
    for where, text in _code(case):
        yield from _in_code_text(where, text, ahead)
    for passage in prose.passages(case):
        yield from _in_prose(passage, ahead, case.number)


def _code(case: Case) -> Iterator[tuple[str, str]]:
    """Where and text of all code of the chapter: target, test, the notebook's cells, faults."""
    for path, file in sources.tree(case.chapter.folder / "target").items():
        if path.endswith(".py"):
            yield case.name(file), sources.read(file)
    yield case.name(case.test), sources.read(case.test)
    yield f"{case.name(case.toml)}, run", case.chapter.run
    for question in case.chapter.questions:
        yield f"{case.name(case.toml)}, show", question.show
    yield from prose.code_cells(case)


def _imports(case: Case, ahead: Later) -> Iterator[Finding]:
    files = snapshot.snapshot_files(case.number)
    for where, text in _code(case):
        for line, module, name in sources.imports(text):
            path = sources.module_path(module, files)
            if path is None:
                brings = ahead.modules.get(module)
                yield _of(f"line {line} imports {module}", where, brings)
            elif name is not None and sources.module_path(f"{module}.{name}", files) is None:
                if name not in set(sources.defined_names(sources.read(files[path]))):
                    yield _of(
                        f"line {line} imports {name} of {module}", where, ahead.names.get(name)
                    )


def _of(what: str, where: str, brings: int | None) -> Finding:
    by = f", which chapter {brings:02d} brings" if brings is not None else ", which is nowhere"
    return Finding(what + by, where, "Use what this chapter and those before it have.")


def _in_code_text(where: str, text: str, ahead: Later) -> Iterator[Finding]:
    """Names in comments, docstrings and strings; as code they can't run, and the tests do."""
    words = set(re.findall(r"[A-Za-z_]\w+", text))
    for name in sorted(words & ahead.names.keys()):
        if distinctive(name) and not _exempt(_paragraph(text, name), ahead.names[name]):
            yield _of(f"it names {name}", where, ahead.names[name])
    imported = {module for _, module, _ in sources.imports(text)}
    for module, number in ahead.modules.items():
        pattern = rf"\b({re.escape(module)}|{re.escape(module.replace('.', '/'))}\.py)\b"
        found = re.search(pattern, text) if module not in imported else None
        if found and not _exempt(_paragraph(text, found[0]), number):
            yield _of(f"it names {found[0]}", where, number)


def _in_prose(passage: prose.Passage, ahead: Later, number: int) -> Iterator[Finding]:
    text = passage.text
    quoted = {word for span in re.findall(r"`([^`\n]+)`", text) for word in _quoted_names(span)}
    words = set(re.findall(r"[A-Za-z_]\w+", text))
    for name, brings in ahead.names.items():
        if name in quoted or (distinctive(name) and name in words):
            if not _exempt(text, brings, number):
                yield _of(f"{_quote(text, name)} names {name}", passage.where, brings)
    for term, brings in ahead.terms.items():
        if prose.uses_term(text, term) and not _exempt(text, brings, number):
            yield _of(f"{_quote(text, term)} uses the term {term!r}", passage.where, brings)
    for module, brings in ahead.modules.items():
        path = module.replace(".", "/") + ".py"
        named = path in text or re.search(rf"\b{re.escape(module)}\b", text)
        if named and not _exempt(text, brings, number):
            yield _of(f"{_quote(text, path)} names {path}", passage.where, brings)


def _quoted_names(span: str) -> list[str]:
    """The name that a code span is: `Start`, `Start(partial)`, `Model.stream()`."""
    found = re.match(r"([A-Za-z_]\w*)(?:\.\w+)*(?:\(.*\))?$", span)
    return [found[1]] if found and not found[1].islower() else []


def _exempt(text: str, brings: int, number: int | None = None) -> bool:
    """A passage that says which chapter brings a thing may name it."""
    if number is not None and brings == number + 1 and "next chapter" in text.lower():
        return True
    mentioned = re.findall(r"\bchapters?((?:[ ,–-]|and|to|\d)+)", text, re.I)
    return any(int(n) >= brings for part in mentioned for n in re.findall(r"\d+", part))


def _paragraph(text: str, word: str) -> str:
    found = [part for part in re.split(r"\n\s*\n", text) if word in part]
    return found[0] if found else text


def _quote(text: str, word: str) -> str:
    """The words around the find, so that it can be searched for."""
    at = text.lower().find(word.lower())
    start, end = max(0, at - 25), at + len(word) + 25
    cut = " ".join(text[start:end].split())
    return f"“{'…' if start else ''}{cut}{'…' if end < len(text) else ''}”"


RULES = (
    Rule(
        "later",
        "Code, tests and text use no name, module or term of a later chapter.",
        later,
        swap(
            "checkpoints/01-hello/hints.md",
            "Join the word",
            "Unlike a farewell: join the word",
        ),
        needs=("files",),
    ),
)
