"""A key that gets out is found: in what the tests print, log or raise, and in the notebooks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.run import RECORDED, SECRET, let_a_key_out

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

PLANTED = """
import logging
import sys

def test_prints(): print(key)
def test_prints_an_error(): print(key, file=sys.stderr)
def test_logs(): logging.getLogger("httpcore").debug("headers %r", {"authorization": key})
def test_raises(): raise RuntimeError(f"refused with {key}")
def test_keeps_it(): assert len(key) > 10
"""


def test_a_test_that_lets_a_key_out_is_found(tmp_path: Path) -> None:
    halves = f"key = 'sk-' + {SECRET[:5]!r} + {SECRET[5:]!r}\n"
    (tmp_path / "test_planted.py").write_text(halves + PLANTED, encoding="utf-8", newline="\n")
    out = tmp_path / "out.xml"
    command = [sys.executable, "-m", "pytest", "-q", *RECORDED, f"--junitxml={out}", "."]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert let_a_key_out(out) == [
        f"test_planted.test_{name}" for name in ("prints", "prints_an_error", "logs", "raises")
    ]


def test_no_notebook_shows_the_key_of_its_cells() -> None:
    keys: set[str] = set()
    shown = ""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            keys |= set(re.findall(r'KEY = "([^"]+)"', "".join(cell["source"])))
            shown += json.dumps(cell.get("outputs", []))
    assert keys
    assert [key for key in keys if key in shown] == []
