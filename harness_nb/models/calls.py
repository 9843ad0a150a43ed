"""Tool calls out of what providers send: argument texts and ids. Pure; used by all adapters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from harness_nb.types import JsonObject, Message, ToolCall


def read_call(call_id: str, name: str, arguments: object, *, cut: bool = False) -> ToolCall:
    """A call from its argument text, which is a JSON object; some servers send the object itself.

    An empty text means no arguments, unless the reply was ``cut`` off at its output limit. What is not a whole JSON
    object (NaN is not JSON) stays as it came in ``malformed``.
    """
    if isinstance(arguments, dict):
        return ToolCall(call_id=call_id, name=name, arguments=mend(arguments))
    text = "" if arguments is None else str(arguments)
    if not text.strip() and not cut:
        return ToolCall(call_id=call_id, name=name)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return ToolCall(call_id=call_id, name=name, arguments=mend(value))
    return ToolCall(call_id=call_id, name=name, malformed=text)


def write_arguments(call: ToolCall) -> str:
    """The argument text of a call for a request: always a JSON object, since chat templates parse it."""
    if call.malformed is not None:
        return json.dumps({"malformed_arguments": call.malformed}, ensure_ascii=False)
    return json.dumps(call.arguments, ensure_ascii=False)


def with_unique_ids(calls: Iterable[ToolCall], messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls with ids of their own: missing ones, and ones that a server uses again, are made up.

    Made-up ids are ``call_<n>_<k>`` for the k-th call behind n messages, so that the same conversation gives the same.
    """
    taken = {call.call_id for message in messages for call in message.tool_calls}
    unique: list[ToolCall] = []
    for k, call in enumerate(calls):
        number = len(messages)
        call_id = call.call_id
        while not call_id or call_id in taken:
            call_id, number = f"call_{number}_{k}", number + 1
        taken.add(call_id)
        unique.append(call if call_id == call.call_id else call.model_copy(update={"call_id": call_id}))
    return tuple(unique)


def mend(value: Any) -> Any:
    """``value`` with lone surrogates replaced by U+FFFD: JSON can escape them, UTF-8 and files cannot hold them."""
    if isinstance(value, str):
        if value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {mend(key): mend(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mend(item) for item in value]
    return value


def _refuse_constant(name: str) -> JsonObject:
    raise ValueError(f"{name} is not JSON")
