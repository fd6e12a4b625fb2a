"""A short talk with a RuleModel, the same characters each time. `pi-course chat` uses its rules."""

from pi_course.chat import Conversation, Write
from pi_course.messages import AgentContext, AssistantMessage, text_of
from pi_course.rule_model import Rule, RuleModel


def second_point(context: AgentContext) -> str:
    """Only who was sent the earlier answer can know what its second point is."""
    for message in reversed(context.messages):
        if isinstance(message, AssistantMessage) and " 2. " in text_of(message):
            point = text_of(message).split(" 2. ")[1].split(" 3. ")[0]
            return f"The second point is {point}. I know it since you sent it to me again."
    return "Which second point? I was sent no list."


RULES = (
    Rule("hello", "Hello! I answer by rules, and this comes to you in small pieces."),
    Rule("streaming", "Streaming: one event for each small piece, written as it comes."),
    Rule("half", "This sentence breaks off in the", "simulated failure: the line was lost"),
    Rule("error", error="simulated failure: the quota is used up"),
    Rule("types", "Python has simple types such as 1. str 2. int 3. bool"),
    Rule("second point", second_point),
    Rule(None, "I only know: hello, streaming, half, error, types, second point."),
)

LINES = ("hello", "what is streaming?", "make an error", "/exit")


async def streaming_demo(write: Write) -> None:
    """Type LINES into a conversation, the failing one included, and count what it holds."""
    conversation = Conversation(RuleModel(RULES))
    write("pi-course streaming demo\n\n")
    for line in LINES:
        write(f"> {line}\n")
        if line != "/exit":
            await conversation.say(line, write)
    write(f"{len(conversation.messages)} messages\n")
