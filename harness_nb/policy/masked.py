"""What holds a mask in place of a secret is not run: it would do something else than it says. Pure."""

from __future__ import annotations

import json

from harness_nb.outputs.masking import masks_in
from harness_nb.types import Decision, ToolCall

_WRITERS = ("python", "bash", "write_file", "search_replace")


def deny_masked_secrets(call: ToolCall, source: str) -> Decision | None:
    """Code and files in which a mask stands for a value: copied from a result, or read back from a record."""
    if call.name not in _WRITERS:
        return None
    masks = masks_in(source) or masks_in(json.dumps(call.arguments, ensure_ascii=False))
    if not masks:
        return None
    return Decision(verdict="deny", reason=why_not_run(masks[0]), policy="deny_masked_secrets")


def why_not_run(mask: str) -> str:
    """Why something with this mask in it is not run, as a clause."""
    return (
        f"{mask} stands in it for a value that is neither shown nor recorded, so these words would be used in its "
        "place; take the value from where it is without writing it down, for instance from os.environ, if the person "
        "grants it with --secret NAME"
    )
