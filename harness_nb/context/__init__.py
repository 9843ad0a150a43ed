"""What the model gets to read: the system prompt, the conversation, the skill index. Pure."""

from collections.abc import Sequence

from harness_nb.context import words
from harness_nb.context.history import Conversation
from harness_nb.context.skills import parse_skill
from harness_nb.context.system_prompt import Skill, Surroundings, system_prompt
from harness_nb.types import Message, text_message

__all__ = ["Conversation", "Skill", "Surroundings", "build", "parse_skill", "system_prompt", "words"]


def build(system: str, conversation: Conversation) -> Sequence[Message]:
    """The messages of the next request: a prefix that does not change, then the conversation."""
    return (text_message("system", system), *conversation.messages)
