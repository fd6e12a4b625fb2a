"""A tiny project with a test that fails, for an agent to repair.

Its three files lie in `sample/` beside this module. They are always worked on as a copy.
"""

import shutil
from pathlib import Path

SAMPLE = Path(__file__).with_name("sample")
FILES = ("README.md", "greeting.py", "test_greeting.py")


def copy_to(folder: Path) -> Path:
    """Put the sample project into a new folder, and return that. It must not exist yet."""
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copyfile(SAMPLE / name, folder / name)
    return folder
