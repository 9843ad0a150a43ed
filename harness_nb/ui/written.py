"""What a terminal shows of a call's outputs: text as it comes, line by line, everything else once it will not change.

A terminal cannot take back what it has written. So a line is written when it is whole, a display when another output
follows, and what has changed after that once more at the end. Pure; ``ui.terminal`` writes what it is given.
"""

from __future__ import annotations

from harness_nb.events import CellOutput
from harness_nb.outputs import apply_output, clean_text, head_and_tail, is_derived
from harness_nb.types import JsonObject

CHARACTERS, LINES = 4000, 40
"""How much is written at once; the whole is in the session notebook."""


class WrittenOutputs:
    """The outputs of one call, and how far they have been written."""

    def __init__(self) -> None:
        self._outputs: list[JsonObject] = []
        self._written: dict[int, str] = {}

    def apply(self, event: CellOutput) -> list[str]:
        """Fold an event; the texts to write now, with colours. In-between states are not written."""
        apply_output(self._outputs, event)
        if event.op == "clear":
            self._written.clear()
        return [] if event.transient else self._news(ended=False)

    def finish(self) -> list[str]:
        """The texts that are still to be written when the cell has ended."""
        return self._news(ended=True)

    @property
    def unfinished(self) -> str:
        """The line at the end that is still being written, a progress bar perhaps; without colours."""
        kept = [output for output in self._outputs if not is_derived(output)]
        if not kept or kept[-1]["output_type"] == "error":
            return ""
        last = kept[-1]
        text = last["text"] if last["output_type"] == "stream" else str(last["data"].get("text/plain", ""))
        return clean_text(str(text)).rpartition("\n")[2]

    def _news(self, ended: bool) -> list[str]:
        outputs = [output for output in self._outputs if ended or not is_derived(output)]
        news = []
        for place, output in enumerate(outputs):
            text, before = output_text(output), self._written.get(place)
            last, stream = place == len(outputs) - 1, output["output_type"] == "stream"
            if last and not ended:
                text = text[: text.rfind("\n") + 1] if stream else ""
            grown = before is None or text.startswith(before)
            if not text or text == before or not (grown or ended) or (before is not None and not stream and not ended):
                continue
            self._written[place] = text
            new = text[len(before or "") :] if grown else text
            if new.strip():
                news.append(head_and_tail(new.strip("\n"), CHARACTERS, LINES))
        return news


def output_text(output: JsonObject) -> str:
    """An output in nbformat's form as text for a terminal; colours stay. Of a plot of metrics it is the summary."""
    if output["output_type"] == "stream":
        return str(output["text"])
    if output["output_type"] == "error":
        return "\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}"
    if is_derived(output):
        return str(output["data"]["text/plain"].split("\n")[0])
    pictures = [kind for kind in output["data"] if kind.startswith("image/")]
    if pictures:
        return f"[{pictures[0]}: see the session notebook]"
    return str(output["data"].get("text/plain", f"[{', '.join(output['data'])}: see the session notebook]"))
