"""What a person reads about cells that were, or were not, put into the open notebook; and whether they could be. Pure
but for ``installed_extension``, which looks into Jupyter's folders.

Used by the verb ``export`` and by ``harness-nb doctor``.
"""

from __future__ import annotations

from pathlib import Path

from harness_nb.ui import html
from harness_nb.ui.here import Failure, Placed
from harness_nb.ui.html import Link
from harness_nb.ui.publish import Bundle

PACKAGED = Path(__file__).parent / "labextensions" / "harness-nb"
"""The extension as this package ships it."""

_WHERE = "JupyterLab 4.4 and Notebook 7.4 can, if harness_nb is installed where the Jupyter server runs"


def placed_block(placed: Placed, notebook: Link) -> Bundle:
    """One note: what was done, or why not and where the cells are."""
    if placed.failure is not None:
        sign, colour = ("✗", html.RED) if placed.failure is Failure.REFUSED else ("○", html.GREY)
        return html.note_block(sign, f"No cells were put into this notebook: {_reason(placed)} They are in", colour,
                               link=notebook)  # fmt: skip
    return html.note_block("✓", f"{done_words(placed)} Also in", html.GREEN, link=notebook)


def done_words(placed: Placed) -> str:
    """The numbers of a success as sentences."""
    counts = {
        f"put below {'the %%agent cell' if placed.below else 'this one'}": placed.inserted,
        "replaced": placed.replaced,
        "as before": placed.unchanged,
        "removed": placed.removed,
    }
    parts = [f"{_cells(count)} {what}" for what, count in counts.items() if count]
    words = f"{', '.join(parts) or 'No cells to put here'}."
    if placed.kept:
        words += f" {_cells(len(placed.kept))} that you have edited since {'was' if len(placed.kept) == 1 else 'were'}"
        words += " left as they are." if len(placed.kept) > 1 else " left as it is."
    return words


def _reason(placed: Placed) -> str:
    match placed.failure:
        case Failure.NO_PAGE:
            return "nobody has it open in a page that takes cells."
        case Failure.NO_EXTENSION:
            return f"this page has no extension for it. {_WHERE}; reload the page after that."
        case Failure.NO_ANSWER:
            return f"the front-end does not answer. {_WHERE}; reload the page after that."
        case _:
            name = placed.front_end or "the page"
            return f"{name} says: {placed.detail.rstrip('.') or 'no reason'}."


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def installed_extension() -> tuple[bool, str]:
    """Whether Jupyter servers of this environment serve our extension to their pages, and a sentence about it."""
    from jupyter_core.paths import jupyter_data_dir, jupyter_path

    script = Path("harness-nb", "static", "remoteEntry.js")
    places = [Path(folder, script) for folder in jupyter_path("labextensions")]
    found = next((place for place in places if place.is_file()), None)
    own = Path(jupyter_data_dir(), "labextensions")
    copy = f"copy the folder {PACKAGED} into {own} and reload the page"
    if found is None:
        return False, f"the extension of JupyterLab and Notebook is not installed; {copy}"
    folder = found.parent.parent
    if _files(folder) != _files(PACKAGED):
        return False, f"{folder} is of another version of harness_nb; install this one anew, or {copy}"
    return True, f"JupyterLab from 4.4 and Notebook from 7.4 on can take cells here ({folder})"


def _files(extension: Path) -> dict[str, bytes]:
    """The scripts of an extension."""
    return {path.name: path.read_bytes() for path in (extension / "static").glob("*.js")}
