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
        if not _NAME.fullmatch(self.name):
            raise ToolError(
                f"the tool name {self.name!r} is refused by providers:"
                " take 1 to 64 of the characters a-z, A-Z, 0-9, _ and -"
            )
        definition = ToolDefinition(
            name=self.name,
            description=self.description,
            parameters=closed_schema(self.parameters),
        )
        object.__setattr__(self, "definition", definition)


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

    def make(function: ToolFunction) -> Tool:
        own_name = name or getattr(function, "__name__", "")
        described = description or inspect.cleandoc(function.__doc__ or "")
        if not described:
            raise ToolError(f"{own_name}() has no docstring, and a model chooses by description")
        parameters, for_context = _parameters_of(function, own_name)
        names = tuple(parameters.model_fields)

        async def execute(arguments: BaseModel, context: ToolContext) -> ToolOutput:
            values = {name: getattr(arguments, name) for name in names}
            output = await function(**values, **dict.fromkeys(for_context, context))
            return ToolOutput(output) if isinstance(output, str) else output

        return Tool(own_name, described, parameters, execute, sequential)

    return make if function is None else make(function)


def _parameters_of(function: ToolFunction, name: str) -> tuple[type[BaseModel], list[str]]:
    """The model of what the model sends, and the names of the parameters that get the context."""
    if not inspect.iscoroutinefunction(function):
        raise ToolError(f"{name}() must be an async def function")
    fields: dict[str, Any] = {}
    for_context: list[str] = []
    try:
        for one in inspect.signature(function, eval_str=True).parameters.values():
            if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
                raise ToolError(f"{name}() has {one}: arguments come one by one, under their names")
            if one.annotation is one.empty:
                raise ToolError(f"{name}() says no type for {one.name}: the schema needs one")
            if ToolContext in (one.annotation, *get_args(one.annotation)):
                for_context.append(one.name)
            else:
                default = ... if one.default is one.empty else one.default
                fields[one.name] = (one.annotation, default)
        with warnings.catch_warnings():  # a parameter may be called json or copy, as a method is
            warnings.simplefilter("ignore", UserWarning)
            config = ConfigDict(protected_namespaces=())
            model = create_model(name, __module__=function.__module__, __config__=config, **fields)
    except (NameError, TypeError, PydanticUserError) as error:
        problem = error.message if isinstance(error, PydanticUserError) else error
        raise ToolError(f"{name}() has a parameter that makes no schema: {problem}") from None
    for one in fields.keys() - model.model_fields.keys():
        raise ToolError(f"{name}() has a parameter {one}, and no field can be called that")
    return model, for_context


class ToolRegistry:
    """The tools of an agent, by name, in the order in which they came."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for one in tools:
            self.register(one)

    def register(self, tool: Tool) -> None:
        if tool.name in self._tools:
            raise ToolError(f"there is a tool {tool.name!r} already: give this one another name")
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def list(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model sees: name, description and parameters, nothing of the function."""
        return tuple(one.definition for one in self._tools.values())


async def execute_tool_call(
    call: ToolCall, registry: ToolRegistry, context: ToolContext
) -> ToolResultMessage:
    """Carry out one call. Each failure is a result too, and nothing that a tool raises gets out.

    Three things do: a cancellation of the task that runs this, KeyboardInterrupt and GeneratorExit.
    The first two come from the person who wants everything to stop, not from the tool. With the
    third Python closes a coroutine that nobody awaits any more.
    """
    found = registry.get(call.name)
    if found is None:
        return failure(call, _unknown(call.name, registry))
    try:
        schema = found.definition.parameters
        arguments, read = parse_tool_arguments(found.parameters, schema, call.arguments)
    except Exception as error:
        reason = f"its arguments were refused, and it did not run.\n{message_of(error)}"
        return failure(call, reason)
    progress = _Progress(context.report_progress)
    asked_before = _cancel_requests()
    try:
        for path in read:
            progress(f"{path} was sent as a string and read as the JSON in it")
        output = await found.execute(arguments, replace(context, report_progress=progress))
        result = result_of(call, output)
    except asyncio.CancelledError:
        if _cancel_requests():
            raise
        result = failure(call, "it was cancelled from inside")
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except SystemExit as error:
        result = failure(call, f"it asked the whole program to exit: {message_of(error)}")
    except BaseException as error:
        result = failure(call, message_of(error))
    finally:
        progress.close()
    if _cancel_requests() > asked_before:  # the tool caught what was meant for our task
        raise asyncio.CancelledError
    return result


def _unknown(name: str, registry: ToolRegistry) -> str:
    names = [one.name for one in registry.list()]
    close = difflib.get_close_matches(name, names)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"
    return f"there is no tool of this name; {hint if names else 'there are no tools at all'}"


def _cancel_requests() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


class _Progress:
    """The caller's listener, until the call has settled: what comes later belongs to no call."""

    def __init__(self, report: Callable[[Content], None]) -> None:
        self._report = report

    def __call__(self, content: Content) -> None:
        self._report(content)

    def close(self) -> None:
        self._report = drop_progress
