"""The wheel holds the whole course and works where no checkout is near."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pi_course_kit.checkpoint import checkpoints, find

ROOT = Path(__file__).resolve().parents[2]
BUILT_FROM = ["pi_course", "pi_course_kit", "checkpoints", "notebooks", "jupyter", "tests"]
LYING_AROUND = [
    "notebooks/.env",
    "notebooks/.ipynb_checkpoints/00-prologue-checkpoint.ipynb",
    "pi_course/__pycache__/loop.cpython-311.pyc",
    "checkpoints/03-message-ir/target/pi_course/__pycache__/messages.cpython-311.pyc",
]

pytestmark = pytest.mark.slow


def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(argument) for argument in arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        **options,
    )


def built(*arguments: str | Path, **options: Any) -> None:
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the tree in which things lie around that no wheel should hold."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in BUILT_FROM:
        shutil.copytree(ROOT / name, tree / name)
    for name in ["pyproject.toml", "README.md", "LICENSE", ".gitignore"]:
        shutil.copy(ROOT / name, tree / name)
    for name in LYING_AROUND:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("{}", encoding="utf-8", newline="\n")
    # Isolation would fetch hatchling from the network; the dev extra has it.
    built(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, tree)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of scripts in a new environment that has the wheel and not the checkout."""
    venv = tmp_path_factory.mktemp("my courses 课程") / "venv"
    built(sys.executable, "-m", "venv", "--without-pip", venv)
    scripts = venv / Path(sysconfig.get_path("scripts")).name
    python = scripts / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    built(*pip, "install", "--no-deps", "--no-index", wheel)
    # Dependencies come from the environment that runs this test, with no network. It is added
    # after the install, or pip would take the checkout's pi-course for an old version to remove.
    told = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", check=True)
    (Path(told.stdout.strip()) / "dependencies.pth").write_text(
        sysconfig.get_path("purelib") + "\n", encoding="utf-8", newline="\n"
    )
    return scripts


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    dropped = re.compile("PYTHON|PYTEST|PI_COURSE|VIRTUAL_ENV|XDG")
    kept = {name: value for name, value in os.environ.items() if not dropped.match(name)}
    return kept | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NO_COLOR": "1"}


def test_the_wheel_holds_the_course_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    data = "pi_course_kit/_data"
    for chapter in checkpoints():
        assert f"{data}/notebooks/{chapter.id}.ipynb" in names
        for path in chapter.folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                inside = path.relative_to(chapter.folder.parent).as_posix()
                assert f"{data}/checkpoints/{inside}" in names
    unwanted = re.compile(r"__pycache__|\.pyc|\.ipynb_checkpoints|(^|/)\.env|^tests/|^benchmarks/")
    assert [name for name in names if unwanted.search(name)] == []
    tops = {name.partition("/")[0] for name in names}
    assert {re.sub(r"-[\d.]+\.", ".", top.replace("pi_course-", "X-")) for top in tops} == {
        "pi_course",
        "pi_course_kit",
        "X.data",
        "X.dist-info",
    }


def test_the_runtime_lies_beside_the_kit_as_its_own_package(installed: Path) -> None:
    told = run(installed / "python", "-c", "import pi_course; print(pi_course.__file__)", cwd="/")
    assert str(installed.parent) in told.stdout, told.stderr
    overrides = installed.parent / "share/jupyter/lab/settings/overrides.d/pi-course.json"
    assert overrides.is_file()


def test_practice_and_check_work_from_a_wheel(
    installed: Path, env: dict[str, str], tmp_path: Path
) -> None:
    course = installed / "pi-course"
    folder = tmp_path / "übung 三"
    env["PI_COURSE_WORKSPACE"] = str(tmp_path / "work")  # nobody may write at the root
    made = run(course, "practice", "03", folder, cwd="/", env=env)
    assert made.returncode == 0, made.stderr

    red = run(course, "check", folder, cwd="/", env=env)
    assert red.returncode == 1, red.stdout + red.stderr
    for line in find("03").first_red:
        assert line in red.stdout

    # A module of the learner's that says a word of its own: it is what ran, and nothing else.
    messages = folder / "pi_course" / "messages.py"
    messages.write_text("raise RuntimeError('zanzibar')\n", encoding="utf-8", newline="\n")
    again = run(course, "check", folder, "--json", cwd="/", env=env)
    assert again.returncode == 1, again.stdout + again.stderr
    report = json.loads(again.stdout)
    assert report["verdict"] == "red"
    assert "zanzibar" in again.stdout
    tested = {entry["path"]: entry["sha256"] for entry in report["tested"]}
    for path, sha256 in tested.items():
        assert sha256 == hashlib.sha256((folder / path).read_bytes()).hexdigest()
    assert "pi_course/messages.py" in tested


def test_without_a_checkout_the_workspace_is_where_one_stands(
    installed: Path, env: dict[str, str], tmp_path: Path
) -> None:
    made = run(installed / "pi-course", "practice", "02", cwd=tmp_path, env=env)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "pi-practice" / find("02").id / "LEARNING.md").is_file()
