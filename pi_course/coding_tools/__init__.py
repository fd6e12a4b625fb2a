"""Four tools that let a model work in a folder: read, write, edit and bash."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from pi_course.coding_tools.bash import bash_shell, bash_tool, child_environment
from pi_course.coding_tools.edit import edit_tool
from pi_course.coding_tools.limits import DEFAULT_LIMITS, Limits
from pi_course.coding_tools.mutation_queue import MutationQueue
from pi_course.coding_tools.output_tail import OutputFolder
from pi_course.coding_tools.paths import Workspace
from pi_course.coding_tools.read import read_tool
from pi_course.coding_tools.refusal import ToolRefused
from pi_course.coding_tools.sandbox import sandboxed
from pi_course.coding_tools.write import write_tool
from pi_course.tool import ToolRegistry

Containment: TypeAlias = Literal["workspace", "unrestricted", "sandbox"]


def create_coding_tools(
    cwd: str | Path,
    *,
    containment: Containment = "workspace",
    limits: Limits = DEFAULT_LIMITS,
    environment: Mapping[str, str] | None = None,
) -> ToolRegistry:
    """read, write, edit and bash for a folder. May be made outside of any event loop.

    "workspace" keeps read, write and edit inside the folder, and leaves bash free: a guardrail.
    "sandbox" does that and isolates bash; SandboxUnavailable is raised where that can't be done.
    "unrestricted" lets all of them go anywhere. `environment` is added to the few variables that
    commands get.
    """
    if containment not in ("workspace", "unrestricted", "sandbox"):
        raise ToolRefused(
            f"containment is {containment!r}: take 'workspace', 'unrestricted' or 'sandbox'"
        )
    if not Path(cwd).is_dir():
        raise ToolRefused(f"there is no folder {cwd}: tools need one to work in")
    outputs = OutputFolder()
    contained = containment != "unrestricted"
    workspace = Workspace(Path(cwd), contained=contained, readable=[outputs.path])
    front = sandboxed(workspace.root) if containment == "sandbox" else ()
    shell = bash_shell(workspace.root, child_environment(environment), front)
    queue = MutationQueue()
    return ToolRegistry(
        [
            read_tool(workspace, limits),
            write_tool(workspace, queue),
            edit_tool(workspace, queue, limits),
            bash_tool(shell, outputs, limits),
        ]
    )
