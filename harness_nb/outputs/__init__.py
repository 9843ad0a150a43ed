"""The output firewall: what a tool kernel prints and shows, cleaned, bounded and coalesced. Pure: no I/O, no clock.

The session feeds a ``Firewall`` and passes its events on; notebook and screen fold them with ``apply_output``; the loop
asks ``result_content`` for what the model gets. Imports types, events and ports, nothing else of ours.
"""

from harness_nb.outputs.bounds import Amount, Bounds, format_bytes, format_seconds, head_and_tail
from harness_nb.outputs.content import result_content
from harness_nb.outputs.firewall import Firewall
from harness_nb.outputs.fold import apply_output, is_derived
from harness_nb.outputs.metrics import MetricsReader
from harness_nb.outputs.status import status_line
from harness_nb.outputs.terminal import clean_text
from harness_nb.outputs.whole import Offloaded, Sink

__all__ = [
    "Amount",
    "Bounds",
    "Firewall",
    "MetricsReader",
    "Offloaded",
    "Sink",
    "apply_output",
    "clean_text",
    "format_bytes",
    "format_seconds",
    "head_and_tail",
    "is_derived",
    "result_content",
    "status_line",
]
