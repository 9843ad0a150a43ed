"""The story as a notebook, byte for byte. Look at the notebook in JupyterLab when it changes.

To accept a change: ``UPDATE_GOLDEN=1 pytest tests/notebook/test_golden.py``, then look at the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from story import tell

from harness_nb.notebook import NotebookFold

GOLDEN = Path(__file__).parent / "golden.ipynb"


def test_the_story_reads_as_it_did() -> None:
    fold = NotebookFold("20261114-090000-abcd")
    for event in tell():
        fold.apply(event)
    text = json.dumps(fold.notebook(), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
