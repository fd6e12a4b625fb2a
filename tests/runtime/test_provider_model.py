"""What a ProviderModel makes of errors that the chapter's own test does not think of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from pi_course.messages import AgentContext, AssistantMessage, Signal, user_message
from pi_course.providers.chunks import ProviderChunk, ProviderRequest, TextChunk
from pi_course.providers.openai_compatible import create_openai_compatible_model


class MuteError(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


class MuteTransport:
    async def stream(
        self, request: ProviderRequest, *, signal: Signal | None = None
    ) -> AsyncIterator[ProviderChunk]:
        yield TextChunk("half")
        raise MuteError


def test_an_error_that_cannot_be_put_into_words_ends_the_stream() -> None:
    async def reply() -> AssistantMessage:
        model = create_openai_compatible_model(
            provider="test", model="m", transport=MuteTransport()
        )
        stream = model.stream(AgentContext([user_message("Read README.md")]))
        return await asyncio.wait_for(stream.result(), 10)

    message = asyncio.run(reply())
    assert (message.stop_reason, message.error_message) == ("error", "MuteError")
    assert [block.type for block in message.content] == ["text"]
