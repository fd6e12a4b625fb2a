"""What is written about the project agrees with the project."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pi_course_kit
from benchmarks.__main__ import table
from benchmarks.measure import compared, limited, medians
from pi_course_kit import sync
from pi_course_kit.checkpoint import checkpoints
from pi_course_kit.cli import COMMANDS
from tests.run import Report, verified

ROOT = Path(__file__).resolve().parents[1]
PROSE = ["README.md", "CONTRIBUTING.md"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def pyproject() -> dict[str, Any]:
    return tomllib.loads(read("pyproject.toml"))


def test_what_is_generated_is_fresh() -> None:
    """The README's table of chapters, the pages in docs/, starters and pi_course/."""
    assert sync.sync(check=True) == [], "run: pi-course dev sync"


def test_the_readme_names_every_chapter_by_its_title() -> None:
    text = read("README.md")
    rows = re.findall(r"^\| \[(\d\d)\]\((\S+)\) \| (.+?) \|", text, re.M)
    assert rows == [
        (chapter.nn, f"notebooks/{chapter.id}.ipynb", chapter.title) for chapter in checkpoints()
    ]


@pytest.mark.parametrize("name", PROSE)
def test_commands_in_prose_exist(name: str) -> None:
    text = read(name)
    from pi_course_kit.commands.dev import command as dev

    assert set(re.findall(r"pi-course ([a-z]+)", text)) <= {*COMMANDS, "make"}
    assert set(re.findall(r"pi-course dev ([a-z]+)", text)) <= set(dev.commands)
    targets = re.search(r"^\.PHONY: (.+)$", read("Makefile"), re.M)
    assert targets is not None
    assert set(re.findall(r"(?:`|^)make (?:-C pi-course )?([a-z]+)", text, re.M)) <= {
        *targets[1].split()
    }


@pytest.mark.parametrize("name", PROSE)
def test_links_and_folders_in_prose_exist(name: str) -> None:
    text = read(name)
    named = [target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    named += re.findall(
        r"`((?:notebooks|pi_course|checkpoints|tests|benchmarks|pi_course_kit)/)`", text
    )
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_versions_agree() -> None:
    project, tool = pyproject()["project"], pyproject()["tool"]
    assert project["version"] == pi_course_kit.__version__
    assert project["requires-python"] == f">={tool['basedpyright']['pythonVersion']}"
    assert tool["ruff"]["target-version"] == "py" + project["requires-python"][2:].replace(".", "")
    assert f"Python {project['requires-python'][2:]}" in read("README.md")


def test_constraints_pin_every_dependency_and_hold_nothing_else() -> None:
    lines = read("constraints.txt").strip().split("\n")
    odd = [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", line)]
    assert odd == []
    pins = dict(line.partition(" ; ")[0].split("==") for line in lines)
    project = pyproject()["project"]
    wanted = [*project["dependencies"], *pyproject()["build-system"]["requires"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    for requirement in map(Requirement, wanted):
        if requirement.name == project["name"]:
            continue
        pinned = pins.get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement.name} has no line in constraints.txt"
        assert pinned in requirement.specifier, f"{requirement} and {pinned} disagree"


def test_jupyterlab_starts_quietly() -> None:
    settings = json.loads(read("jupyter/overrides.json"))
    news = settings["@jupyterlab/apputils-extension:notification"]
    assert news == {"fetchNews": "false", "checkForUpdates": False}
    # Widget callbacks must run on the main thread, else a Stop button waits for the cell's end.
    kernels = settings["@jupyterlab/apputils-extension:kernels-settings"]
    assert kernels == {"commsOverSubshells": "disabled"}


def test_ci_runs_what_the_readme_says() -> None:
    assert "```\nmake test\n```" in read("README.md")
    assert re.search(r"^make test( |$)", read(".ci/run"), re.M)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


# The script that runs it all


def test_a_run_of_nothing_is_a_failure() -> None:
    report = Report()
    report.count("tests", 12)
    assert report.summary() == "All green: 12 tests."
    report.count("faults", 0)
    assert report.summary() == "FAILED: no faults ran (12 tests, 0 faults)"


def test_a_verify_that_says_nothing_counts_as_nothing(tmp_path: Path) -> None:
    out = tmp_path / "verify.json"
    out.write_text("", encoding="utf-8", newline="\n")
    assert verified(out) == (0, 0)
    chapters = [
        {"chapter": "00", "rules": {"pins": "ok"}, "faults": 2, "findings": []},
        {"chapter": "01", "rules": {"pins": "ok"}, "faults": 3, "findings": []},
    ]
    out.write_text(json.dumps({"chapters": chapters}), encoding="utf-8", newline="\n")
    assert verified(out) == (2, 5)


def test_benchmark_table_shows_ratio_goal_and_the_saved_run() -> None:
    rows = [
        compared("check", 30.0, "ms", ("pytest", 15.0), at_most=1.5),
        limited("modules", 40, "", at_most=60),
    ]
    shown = table(rows, {"check": 60.0})
    assert [line.split() for line in shown.split("\n")[2:]] == [
        ["check", "30", "ms", "pytest", "15", "ms", "2.00x", "<=", "1.5x", "MISSED", "0.50x"],
        ["modules", "40", "<=", "60", "met", "new"],
    ]


def test_benchmark_subjects_take_turns_after_a_warm_up() -> None:
    calls: list[str] = []
    took = medians({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2)
    assert calls == ["a", "b"] * 3
    assert set(took) == {"a", "b"}
