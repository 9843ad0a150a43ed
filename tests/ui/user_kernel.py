"""The user's kernel with the extension, driven as a front-end drives it."""

from __future__ import annotations

from typing import Any


def ask(client: Any, code: str) -> tuple[str, str]:
    """Execute a cell as a front-end with a person does, and return its message id and the question that it asks."""
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": True}
    message = client.session.msg("execute_request", content, metadata={"cellId": "cell"})
    client.shell_channel.send(message)
    return message["header"]["msg_id"], client.get_stdin_msg(timeout=60)["content"]["prompt"]


def execute(client: Any, code: str, interrupt_at: str = "") -> tuple[dict[str, Any], dict[str, str]]:
    """The reply to a cell, and what its displays show, by display id; interrupted when one begins with that text."""
    return finish(client, client.execute(code, allow_stdin=False), interrupt_at)


def finish(client: Any, message: str, interrupt_at: str = "") -> tuple[dict[str, Any], dict[str, str]]:
    """As ``execute``, for a cell that has been sent."""
    shown: dict[str, str] = {}
    interrupted = False
    while True:
        got = client.get_iopub_msg(timeout=60)
        if got["parent_header"].get("msg_id") != message:
            continue  # late answers to the question whether the kernel is there
        content = got["content"]
        if got["msg_type"].endswith("display_data"):
            key = content.get("transient", {}).get("display_id") or f"display {len(shown)}"
            shown[key] = content["data"]["text/plain"]
        if interrupt_at and not interrupted and any(text.startswith(interrupt_at) for text in shown.values()):
            interrupted = True
            client.manager.interrupt_kernel()
        if got["msg_type"] == "status" and content["execution_state"] == "idle":
            break
    while True:
        reply = client.get_shell_msg(timeout=60)
        if reply["parent_header"]["msg_id"] == message:
            return reply["content"], shown
