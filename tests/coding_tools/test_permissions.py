"""What the system forbids is told as that, and not as a file that is not there."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401  (a stranger may not be allowed to load it)
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_course.abort import AbortController
from pi_course.coding_tools import create_coding_tools
from pi_course.messages import ToolCall
from pi_course.tool import ToolContext, execute_tool_call

NOBODY = 65534


@pytest.fixture
def closed() -> Iterator[Path]:
    """A workspace where one file and one folder may not be opened, also not by root."""
    with tempfile.TemporaryDirectory() as name:  # not tmp_path: a stranger can't get into that
        root = Path(name)
        (root / "file").write_bytes(b"secret")
        (root / "folder").mkdir()
        (root / "folder" / "file").write_bytes(b"secret")
        (root / "file").chmod(0)
        (root / "folder").chmod(0)
        root.chmod(0o555)
        as_root = os.geteuid() == 0
        if as_root:
            os.seteuid(NOBODY)
        try:
            yield root
        finally:
            if as_root:
                os.seteuid(0)
            root.chmod(0o755)
            (root / "folder").chmod(0o755)


@pytest.mark.parametrize("path", ["file", "folder/file", "folder/new"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {}),
        ("write", {"content": "x"}),
        ("edit", {"edits": [{"oldText": "secret", "newText": "x"}]}),
    ],
    ids=["read", "write", "edit"],
)
def test_what_may_not_be_opened_is_told_as_that(
    closed: Path, name: str, arguments: dict[str, object], path: str
) -> None:
    # Pi, report 3955
    call = ToolCall(id="call_1", name=name, arguments={"path": path, **arguments})
    context = ToolContext("call_1", AbortController().signal)
    result = asyncio.run(execute_tool_call(call, create_coding_tools(closed), context))
    (block,) = result.content
    told = getattr(block, "text", "")
    assert told == f"Tool {name} failed: {path}: the system gives no permission for it"
    assert stat.S_IMODE((closed / "file").stat().st_mode) == 0
