"""A conversation as plain text: what a model reads that is to summarise it, and the list of the calls in it. Pure.

Old results are shortened before newer ones, and everything is shortened as far as the room asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from harness_nb.types import ImagePart, Message, Status, TextPart, ToolCall

STEPS = (2500, 1200, 600, 300, 150, 80)
"""Characters of a piece that are tried, until the whole fits."""

NEWEST = 4
"""So many of the newest messages may be longer than the others."""

TITLE_CHARS = 110
"""Characters of a call in a list of calls."""

_PREPARATION = ("import ", "from ", "%", "cd ", "set -")
"""How lines begin that do not say what a call is about."""


def write_transcript(messages: Sequence[Message], prompts: Iterable[int], limit: int, before: str = "") -> str:
    """``messages`` as text of at most about ``limit`` characters; ``prompts`` are the places of a person's words.

    ``before`` is an earlier hand-over, which comes first. The oldest pieces are left out, with a line that says so,
    where shortening is not enough.
    """
    places = frozenset(prompts)
    pieces: list[str] = []
    for chars in STEPS:
        pieces = [f"[the hand-over of what came before]\n{shorten(before, max(chars, 2000))}"] if before else []
        for place, message in enumerate(messages):
            pieces += _pieces(message, place in places, chars * (3 if place >= len(messages) - NEWEST else 1))
        if sum(map(len, pieces)) + 2 * len(pieces) <= limit:
            return "\n\n".join(pieces)
    kept: list[str] = []
    room = limit
    for piece in reversed(pieces):
        room -= len(piece) + 2
        if room < 0 and kept:
            break
        kept.append(shorten(piece, limit))
    left_out = len(pieces) - len(kept)
    note = [f"[{left_out} earlier pieces are left out here]"] if left_out else []
    return "\n\n".join([*note, *reversed(kept)])


def list_calls(messages: Sequence[Message], most: int) -> list[str]:
    """One line a call, oldest first: id, tool, how it ended, what it was. Only the last ``most``, with a count."""
    statuses = {message.call_id: message.status for message in messages if message.role == "tool"}
    calls = [call for message in messages for call in message.tool_calls]
    lines = [
        f"- {call.call_id} {call.name} ({status_words(statuses.get(call.call_id))}): {title_of_call(call)}".rstrip(": ")
        for call in calls[-most:]
    ]
    return [f"- {len(calls) - most} earlier calls", *lines] if len(calls) > most else lines


def title_of_call(call: ToolCall) -> str:
    """What a call is about, in one line: a path, a pattern, the first line of code and how many there are."""
    if call.malformed is not None:
        return "its arguments were not readable"
    source = str(call.arguments.get("code") or call.arguments.get("command") or "")
    if lines := [" ".join(line.split()) for line in source.splitlines() if line.strip()]:
        telling = next((line for line in lines if not line.startswith(_PREPARATION)), lines[0])
        more = f" … ({len(lines)} lines)" if len(lines) > 1 else ""
        return shorten(telling, TITLE_CHARS) + more
    named = [str(call.arguments[name]) for name in ("path", "pattern", "call", "query") if call.arguments.get(name)]
    return shorten(" ".join(" ".join(named).split()), TITLE_CHARS)


def status_words(status: Status | None) -> str:
    """A status as it is said to the model."""
    return "no result" if status is None else status.value.replace("_", " ")


def shorten(text: str, chars: int) -> str:
    """Head and tail of ``text``, with a note in the middle on how much is left out, if it is longer than ``chars``."""
    if len(text) <= chars:
        return text
    head = max(chars // 2, 1)
    tail = max(chars - head, 1)
    return f"{text[:head]} […{len(text) - head - tail:,} characters left out…] {text[-tail:]}"


def _pieces(message: Message, by_person: bool, chars: int) -> list[str]:
    """The pieces of one message, each under a line that says whose it is."""
    text = "\n".join(_words(message)).strip()
    if message.role == "tool":
        return [f"[result of {message.call_id}: {status_words(message.status)}]\n{shorten(text, chars)}"]
    if message.role != "assistant":
        return [f"[{'the person' if by_person else 'the harness'}]\n{shorten(text, max(chars, 2000))}"]
    said = [f"[the agent]\n{shorten(text, max(chars, 1200))}"] if text else []
    return [*said, *(_call(call, chars) for call in message.tool_calls)]


def _call(call: ToolCall, chars: int) -> str:
    source = call.arguments.get("code") or call.arguments.get("command")
    told = str(source) if source else json.dumps(call.arguments, ensure_ascii=False)
    return f"[call {call.call_id}: {call.name}]\n{shorten(call.malformed or told, chars)}"


def _words(message: Message) -> list[str]:
    """The texts of a message; pictures are named."""
    return [
        part.text if isinstance(part, TextPart) else "[a picture]"
        for part in message.content
        if isinstance(part, TextPart | ImagePart)
    ]
