"""A tool is a typed action at a trust boundary: look up, parse, execute, give a result.

On one side stands a call, which a model wrote; on the other a function with side effects. Between
them every call gets exactly one result, whatever happens: without it the next request to the model
would be refused, and the conversation with it.
"""

import asyncio
import difflib
import inspect
import re
import warnings
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.errors import PydanticUserError

from pi_course.messages import Signal, ToolCall, ToolDefinition, ToolResultMessage
from pi_course.tool_result import Content, ToolOutput, failure, message_of, result_of
from pi_course.tool_schema import ToolError, closed_schema, parse_tool_arguments

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what all providers take


def drop_progress(content: Content) -> None:
    """The listener of a call to which nobody listens."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool knows of its call, beside the arguments.

    A tool looks at `signal` before each step that costs something. What it gives to
    `report_progress` is shown while it works, and is no part of the result.
    """

    call_id: str
    signal: Signal
    report_progress: Callable[[Content], None] = drop_progress


# Any: each tool takes arguments of its own class, and one registry holds them all.
Execute: TypeAlias = Callable[[Any, ToolContext], Awaitable[ToolOutput]]
ToolFunction: TypeAlias = Callable[..., Awaitable[ToolOutput | str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A name, what the model reads about it, and the function that does it.

    `execute` gets an instance of `parameters`. It returns a ToolOutput or raises; both become a
    result. `sequential` says that it must not run beside other calls.
    """

    name: str
    description: str
    parameters: type[BaseModel]
    execute: Execute
    sequential: bool = False
    definition: ToolDefinition = field(init=False, repr=False)

    def __post_init__(self) -> None:
        raise NotImplementedError("Lab 6.2: Tool.__post_init__()")


def tool(
    function: ToolFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    sequential: bool = False,
) -> Any:
    """Make a Tool of a typed async function; its docstring is the description.

    It is used as @tool, or as @tool(name="…", sequential=True) with what is to be different.
    A parameter annotated with ToolContext gets the context, and the model does not see it. All
    others are what the model sends. The function may return a plain text.

    Example:
        >>> @tool
        ... async def read(path: str) -> str:
        ...     "Read a file."
        ...     return files[path]
        >>> read.definition.parameters["required"]
        ('path',)
    """
    raise NotImplementedError("Lab 6.2: tool()")


def _parameters_of(function: ToolFunction, name: str) -> tuple[type[BaseModel], list[str]]:
    """The model of what the model sends, and the names of the parameters that get the context."""
    raise NotImplementedError("Lab 6.2: _parameters_of()")


class ToolRegistry:
    """The tools of an agent, by name, in the order in which they came."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for one in tools:
            self.register(one)

    def register(self, tool: Tool) -> None:
        raise NotImplementedError("Lab 6.2: ToolRegistry.register()")

    def get(self, name: str) -> Tool | None:
        raise NotImplementedError("Lab 6.2: ToolRegistry.get()")

    def list(self) -> tuple[Tool, ...]:
        raise NotImplementedError("Lab 6.2: ToolRegistry.list()")

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model sees: name, description and parameters, nothing of the function."""
        raise NotImplementedError("Lab 6.2: ToolRegistry.definitions()")


async def execute_tool_call(
    call: ToolCall, registry: ToolRegistry, context: ToolContext
) -> ToolResultMessage:
    """Carry out one call. Each failure is a result too, and nothing that a tool raises gets out.

    Three things do: a cancellation of the task that runs this, KeyboardInterrupt and GeneratorExit.
    The first two come from the person who wants everything to stop, not from the tool. With the
    third Python closes a coroutine that nobody awaits any more.
    """
    raise NotImplementedError("Lab 6.3: execute_tool_call()")


def _unknown(name: str, registry: ToolRegistry) -> str:
    raise NotImplementedError("Lab 6.3: _unknown()")


def _cancel_requests() -> int:
    raise NotImplementedError("Lab 6.3: _cancel_requests()")


class _Progress:
    """The caller's listener, until the call has settled: what comes later belongs to no call."""

    def __init__(self, report: Callable[[Content], None]) -> None:
        raise NotImplementedError("Lab 6.3: _Progress.__init__()")

    def __call__(self, content: Content) -> None:
        raise NotImplementedError("Lab 6.3: _Progress.__call__()")

    def close(self) -> None:
        raise NotImplementedError("Lab 6.3: _Progress.close()")
