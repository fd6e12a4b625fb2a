"""Executes a notebook in a fresh kernel and writes it down the same way every time.

A committed notebook records what it was made from: a hash of its code, the digest of the
snapshot that it ran on, and how many cells have output. So stale or cleared outputs are
found without running anything (`problems`).
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import importlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pi_course_kit import snapshot
from pi_course_kit.data import data_dir
from pi_course_kit.errors import CourseError

Notebook = dict[str, Any]  # the JSON of an .ipynb file, read by nbformat
Cell = dict[str, Any]
Output = dict[str, Any]

CELL_SECONDS = 60
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WIDGET = "application/vnd.jupyter.widget-view+json"


def widget_view(widget: Any) -> dict[str, Any]:
    """What a cell displays to show a widget, in the one form that a page can show."""
    return {WIDGET: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}}


class CellFailed(Exception):
    """A cell raised something that no tag announces."""

    def __init__(self, cell: str, error: str) -> None:
        super().__init__(f"cell {cell} raised {error}")


def notebooks() -> tuple[Path, ...]:
    return tuple(sorted(data_dir("notebooks").glob("[0-9][0-9]-*.ipynb")))


def number_of(path: Path) -> int:
    """The chapter that a notebook belongs to, from its name."""
    if not re.match(r"\d\d-", path.name):
        raise CourseError(f"{path} is no chapter's notebook: its name must start as 03- does.")
    return int(path.name[:2])


def read(path: Path) -> Notebook:
    # The reader of format 4 itself: nbformat.reads would put random ids in place of bad ones.
    reader = _untyped("nbformat.v4")
    try:
        notebook = reader.reads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CourseError(f"{path} can't be read as a notebook: {error}.") from error
    if notebook.get("nbformat") != 4 or not isinstance(notebook.get("cells"), list):
        raise CourseError(f"{path} is no notebook of format 4. Save it with JupyterLab first.")
    return notebook


def dump(notebook: Notebook) -> str:
    """The text of the file, as JupyterLab would save it."""
    nbformat = _untyped("nbformat")
    node = nbformat.from_dict(notebook)
    nbformat.validate(node)
    return nbformat.writes(node, version=nbformat.NO_CONVERT) + "\n"


def _untyped(name: str) -> Any:
    # Imported when used: the command line must not pay for it. Its types say nothing.
    return importlib.import_module(name)


def code_cells(notebook: Notebook) -> list[Cell]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source_hash(notebook: Notebook) -> str:
    """sha256 of all code, cell by cell; prose may change without a new run."""
    sources = [cell["source"] for cell in code_cells(notebook)]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def problems(notebook: Notebook, number: int) -> list[str]:
    """What shows, without running it, that a committed notebook is not as it was built."""
    made = notebook["metadata"].get("pi_course", {})
    cells = code_cells(notebook)
    counts = [cell["execution_count"] for cell in cells]
    outputs = sum(bool(cell["outputs"]) for cell in cells)
    found: list[str] = []
    if made.get("source") != source_hash(notebook):
        found.append("its code changed after it was built")
    if made.get("digest") != snapshot.target_digest(number):
        found.append(f"it was built on another snapshot of chapter {number:02d}")
    if not outputs or made.get("outputs") != outputs:
        found.append(f"{outputs} cells have output, {made.get('outputs')} had when it was built")
    # nbval runs a cell without a number, but does not compare it.
    if counts != list(range(1, len(cells) + 1)):
        found.append(f"its code cells are not numbered 1 to {len(cells)}: {counts}")
    ids = [cell.get("id", "") for cell in notebook["cells"]]
    if len(set(ids)) != len(ids) or not all(_own_id(name, number) for name in ids):
        found.append(f"a cell id is not unique or not of the form {number:02d}-07")
    return found


def build(path: Path, *, raw: bool = False) -> Notebook:
    """Run the notebook from top to bottom and return it; the file is not touched.

    `raw` leaves the outputs as the kernel sent them.
    """
    number = number_of(path)
    notebook = read(path)
    for cell in code_cells(notebook):
        cell["outputs"], cell["execution_count"] = [], None
    name_cells(notebook, number)
    with tempfile.TemporaryDirectory(prefix="pi-nb-") as scratch:
        done = asyncio.run(_execute(notebook, Path(scratch)))
    if raw:
        return done
    normalise(done)
    cells = code_cells(done)
    done["metadata"] = {
        "kernelspec": dict(KERNELSPEC),
        "language_info": {"name": "python"},
        "pi_course": {
            "source": source_hash(done),
            "digest": snapshot.target_digest(number),
            "outputs": sum(bool(cell["outputs"]) for cell in cells),
        },
    }
    return done


async def _execute(notebook: Notebook, scratch: Path) -> Notebook:
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    work = scratch / "notebooks"
    work.mkdir()
    # No kernel folders: "python3" is then this interpreter, whatever the user has installed.
    manager: Any = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
        transport="ipc" if os.name == "posix" else "tcp",
        connection_file=str(scratch / "kernel.json"),
    )
    client = NotebookClient(
        _untyped("nbformat").from_dict(notebook),
        km=manager,
        timeout=CELL_SECONDS,
        record_timing=False,
        store_widget_state=False,
        shutdown_kernel="immediate",
    )
    try:
        done = await client.async_execute(
            cleanup_kc=True,  # else nbclient leaves a kernel manager of ours running
            cwd=str(work),
            env=kernel_env(os.environ, scratch),
        )
    except CellExecutionError as error:
        raise CellFailed(_running(notebook, client), f"{error.ename}: {error.evalue}") from None
    except CellTimeoutError:
        late = f"nothing: it ran longer than {CELL_SECONDS} s"
        raise CellFailed(_running(notebook, client), late) from None
    except DeadKernelError:
        raise CellFailed(_running(notebook, client), "nothing: its kernel died") from None
    return cast(Notebook, done)


def kernel_env(environ: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """A kernel that touches nothing of the user: no workspace, no IPython profile or history."""
    kept = {name: value for name, value in environ.items() if name != "PI_COURSE_SOURCE"}
    return kept | {
        "PI_COURSE_WORKSPACE": str(scratch / "workspace"),
        "PI_COURSE_PACE": "0",
        "IPYTHONDIR": str(scratch / "ipython"),
        "PYTHONSAFEPATH": "1",
    }


def _running(notebook: Notebook, client: Any) -> str:
    """The id of the first cell that has not been finished."""
    for cell in code_cells(cast(Notebook, client.nb)):
        failed = any(output["output_type"] == "error" for output in cell["outputs"])
        expected = "raises-exception" in cell["metadata"].get("tags", [])
        if cell["execution_count"] is None or (failed and not expected):
            return cell["id"]
    return notebook["cells"][-1]["id"]


def name_cells(notebook: Notebook, number: int) -> None:
    """Keep hand-written ids such as 03-07; a cell with another id gets the next free one."""
    seen: set[str] = set()
    for cell in notebook["cells"]:
        if _own_id(cell.get("id", ""), number) and cell["id"] not in seen:
            seen.add(cell["id"])
        else:
            cell["id"] = ""
    last = max((int(name[3:]) for name in seen), default=0)
    for cell in notebook["cells"]:
        if not cell["id"]:
            last += 1
            cell["id"] = f"{number:02d}-{last:02d}"


def _own_id(name: str, number: int) -> bool:
    return re.fullmatch(rf"{number:02d}-\d\d", name) is not None


def normalise(notebook: Notebook) -> None:
    """Leave only what a second run gives again: no times, widget ids or tracebacks."""
    for count, cell in enumerate(code_cells(notebook), 1):
        cell["execution_count"] = count
        cell["outputs"] = _outputs(cell["outputs"], count)
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
        if "attachments" in cell and not cell["attachments"]:
            del cell["attachments"]


def _outputs(outputs: list[Output], count: int) -> list[Output]:
    streams: dict[str, Output] = {}
    kept: list[Output] = []
    for output in outputs:
        match output["output_type"]:
            case "stream" if output["name"] in streams:
                streams[output["name"]]["text"] += output["text"]
                continue
            case "stream":
                streams[output["name"]] = output
            case "error":
                output["traceback"] = [f"{output['ename']}: {output['evalue']}"]
            case _:
                output["metadata"] = {}
                output.pop("transient", None)
                output["data"].pop(WIDGET, None)
                if not any(output["data"].values()):
                    continue
                if output["output_type"] == "execute_result":
                    output["execution_count"] = count
        kept.append(output)
    return kept


def differences(committed: Notebook, built: Notebook) -> list[str]:
    """One text a cell that is not as it was committed, with its id and the lines that differ."""
    before = {cell.get("id", ""): cell for cell in committed["cells"]}
    after = {cell["id"]: cell for cell in built["cells"]}
    found = [f"cell {name} is gone" for name in before if name not in after]
    for name, cell in after.items():
        if name not in before:
            found.append(f"cell {name} is new")
        elif before[name] != cell:
            found.append(f"cell {name}:\n" + _diff(before[name], cell))
    if not found:
        found.append("its metadata:\n" + _diff(committed["metadata"], built["metadata"]))
    return found


def _diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The lines that differ, as a reader sees them; all of the JSON when those are the same."""
    for form in (_readable, _whole):
        lines = difflib.unified_diff(form(before), form(after), "committed", "built", "", "", 1, "")
        if differing := [line for line in lines if not line.startswith("@@")]:
            return "\n".join(differing)
    return "only the order of the cells differs"


def _readable(value: Mapping[str, Any]) -> list[str]:
    texts: list[str] = [value.get("source", "")]
    for output in value.get("outputs", []):
        data = output.get("data", {})
        texts += [output.get("text", ""), data.get("text/plain", ""), output.get("evalue", "")]
    return "\n".join(filter(None, texts)).split("\n")


def _whole(value: Mapping[str, Any]) -> list[str]:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).split("\n")
