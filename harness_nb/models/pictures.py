"""Which pictures of a conversation are sent. Pure; ``remote`` calls it before a request is written."""

from __future__ import annotations

from collections.abc import Sequence

from harness_nb.types import ImagePart, Message, Part, TextPart

LEFT_OUT = "[an earlier picture was left out: this server takes only so many]"


def keep_last_pictures(messages: Sequence[Message], limit: int | None) -> Sequence[Message]:
    """The messages with a note in place of each picture but the last ``limit``; ``None`` keeps all."""
    total = sum(isinstance(part, ImagePart) for message in messages for part in message.content)
    if limit is None or total <= limit:
        return messages
    dropped = total - limit
    kept: list[Message] = []
    for message in messages:
        content: list[Part] = []
        for part in message.content:
            drop = isinstance(part, ImagePart) and dropped > 0
            dropped -= drop
            content.append(TextPart(text=LEFT_OUT) if drop else part)
        kept.append(message.model_copy(update={"content": tuple(content)}))
    return kept
