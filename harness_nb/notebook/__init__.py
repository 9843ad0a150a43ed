"""The session notebook: a fold of events into nbformat 4.5, and the way back. Pure: no I/O, no clock.

The session applies each event and writes ``notebook()`` at checkpoints; replay, resume and fork read ``events_of``.
Imports types, events, errors and outputs, nothing else of ours; nbformat itself is not needed to write its format.
"""

from harness_nb.notebook.fold import NotebookFold
from harness_nb.notebook.reading import FORMAT_VERSION, events_of, readable_events
from harness_nb.notebook.upgrade import upgraded

__all__ = ["FORMAT_VERSION", "NotebookFold", "events_of", "readable_events", "upgraded"]
