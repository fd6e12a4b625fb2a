"""A model that answers by rules: enough to talk with, the same words each time, no network."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pi_course.event_stream import AssistantMessageEventStream
from pi_course.messages import (
    AgentContext,
    AssistantMessage,
    Signal,
    UserMessage,
    assistant_message,
    text,
    text_of,
)
from pi_course.scripted_model import ScriptedFailure, ScriptedModel, Sleep


@dataclass(frozen=True, slots=True)
class Rule:
    """If `match` is in the user's text (None: in any case), say `reply`.

    With `error` the reply, if there is one, breaks off there and the stream ends in that error.

    Example:
        >>> Rule("hello", "Hello!")
        Rule(match='hello', reply='Hello!', error=None)
    """

    match: str | None
    reply: str | Callable[[AgentContext], str] | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if self.reply is None and self.error is None:
            raise ValueError(f"the rule for {self.match!r} has neither a reply nor an error")


class RuleModel:
    """A Model that gives each call to the first rule that matches the last user text."""

    def __init__(
        self,
        rules: Iterable[Rule],
        *,
        chunk_size: int | None = 2,
        delay: float = 0.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._rules = tuple(rules)
        self._chunk_size = chunk_size
        self._delay = delay
        self._sleep = sleep

    def stream(
        self, context: AgentContext, *, signal: Signal | None = None
    ) -> AssistantMessageEventStream:
        script = ScriptedModel(
            [self._answer], chunk_size=self._chunk_size, delay=self._delay, sleep=self._sleep
        )
        return script.stream(context, signal=signal)

    def _answer(self, context: AgentContext) -> AssistantMessage | ScriptedFailure:
        asked = _last_user_text(context)
        rule = next((r for r in self._rules if r.match is None or r.match in asked), None)
        if rule is None:
            return _says(f"No rule matches {asked!r}, and there is no fallback.")
        reply = rule.reply(context) if callable(rule.reply) else rule.reply or ""
        return _says(reply) if rule.error is None else ScriptedFailure("error", rule.error, reply)


def _last_user_text(context: AgentContext) -> str:
    users = [message for message in context.messages if isinstance(message, UserMessage)]
    return text_of(users[-1]) if users else ""


def _says(reply: str) -> AssistantMessage:
    return assistant_message([text(reply)])
