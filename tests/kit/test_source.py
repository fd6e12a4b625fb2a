"""The finder decides where pi_course comes from; each case runs in a fresh interpreter."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pi_course_kit.source import brought_by

SERVE = """
import sys
from pathlib import Path
from pi_course_kit.source import serve
finder = serve(Path(sys.argv[1]), {"pi_course.stream": "chapter 07"}, "your folder")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "pi_course"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "one.py").write_text("VALUE = 1\n", encoding="utf-8")
    return tmp_path


def python(code: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-c", SERVE + code, str(folder)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **environment},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refusal(module: str, folder: Path, **environment: str) -> str:
    code = f"try:\n    import {module}\nexcept ModuleNotFoundError as e: print(e.name, '|', e)"
    return python(code, folder, **environment)


def test_serves_the_folder_and_records_the_hash_of_what_ran(folder: Path) -> None:
    code = "import pi_course.one as one; print(one.__file__, one.VALUE, finder.loaded)"
    digest = hashlib.sha256(b"VALUE = 1\n").hexdigest()
    shown = python(code, folder)
    assert shown.startswith(f"{folder / 'pi_course' / 'one.py'} 1 ")
    assert f"'pi_course/one.py': '{digest}'" in shown


def test_a_missing_module_is_not_found_anywhere_else(folder: Path, tmp_path_factory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "pi_course").mkdir()
    (other / "pi_course" / "__init__.py").write_text("", encoding="utf-8")
    (other / "pi_course" / "stream.py").write_text("", encoding="utf-8")
    assert refusal("pi_course.stream", folder, PYTHONPATH=str(other)) == (
        "pi_course.stream | pi_course.stream is not in your folder; chapter 07 brings it."
    )


def test_a_module_that_no_chapter_brings_is_refused_by_name(folder: Path) -> None:
    assert refusal("pi_course.nonsense", folder) == (
        "pi_course.nonsense | pi_course.nonsense is not in your folder."
    )


def test_a_missing_init_is_named(folder: Path) -> None:
    (folder / "pi_course" / "__init__.py").unlink()
    assert "pi_course/__init__.py is missing in your folder" in refusal("pi_course.one", folder)


def test_a_missing_init_of_a_subpackage_is_named(folder: Path) -> None:
    (folder / "pi_course" / "tools").mkdir()
    assert "pi_course/tools/__init__.py is missing" in refusal("pi_course.tools", folder)


def test_no_package_at_all_is_named(tmp_path: Path) -> None:
    assert "There is no pi_course/ in your folder" in refusal("pi_course", tmp_path)


def test_subpackages_are_served(folder: Path) -> None:
    tools = folder / "pi_course" / "tools"
    tools.mkdir()
    (tools / "__init__.py").write_text("", encoding="utf-8")
    (tools / "edit.py").write_text("NAME = 'edit'\n", encoding="utf-8")
    assert python("from pi_course.tools.edit import NAME; print(NAME)", folder) == "edit"


def test_a_pyc_is_never_read_or_written(folder: Path) -> None:
    # A .pyc with the same second and size as the source, which Python itself would take.
    make_stale = """
import importlib.util, os, py_compile
file = Path(sys.argv[1]) / "pi_course" / "one.py"
py_compile.compile(str(file))
stat = file.stat()
file.write_text("VALUE = 2\\n", encoding="utf-8")
os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
import pi_course.one
print(pi_course.one.VALUE, len(list(file.parent.glob("__pycache__/*"))))
"""
    assert python(make_stale, folder) == "2 1"


def test_two_sources_in_one_process_are_refused(folder: Path, tmp_path_factory) -> None:
    code = f"""
serve(Path(sys.argv[1]), {{}}, "your folder")
try:
    serve(Path({str(tmp_path_factory.mktemp("second"))!r}), {{}}, "chapter 03")
except Exception as error:
    print(type(error).__name__, error)
"""
    shown = python(code, folder)
    assert shown.startswith("CourseError pi_course was already imported from")
    assert "Restart the kernel" in shown


def test_an_import_from_elsewhere_comes_too_late(folder: Path) -> None:
    code = """
sys.meta_path.remove(finder)
sys.path.insert(0, sys.argv[1])
import pi_course
try:
    serve(Path("elsewhere"), {}, "your folder")
except Exception as error:
    print(type(error).__name__)
"""
    assert python(code, folder) == "CourseError"


def test_a_syntax_error_leaves_the_hash_of_the_file(folder: Path) -> None:
    (folder / "pi_course" / "one.py").write_text("def broken(:\n", encoding="utf-8")
    code = (
        "try:\n    import pi_course.one\nexcept SyntaxError as e: print(e.lineno, *finder.loaded)"
    )
    assert python(code, folder) == "1 pi_course/__init__.py pi_course/one.py"


def test_brought_by_names_the_first_chapter(tmp_path: Path) -> None:
    for chapter, module in (("00-a", "errors"), ("02-b", "stream"), ("03-c", "stream")):
        package = tmp_path / chapter / "target" / "pi_course"
        package.mkdir(parents=True)
        (package / f"{module}.py").write_text("", encoding="utf-8")
    assert brought_by(tmp_path) == {
        "pi_course.errors": "chapter 00",
        "pi_course.stream": "chapter 02",
    }
