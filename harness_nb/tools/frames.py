"""How a data frame reads as text: its first and last rows, its shape, and the type of each column.

``extension`` registers it for pandas, whose own text tells no types; the HTML that people see stays pandas' own.
Standard library only; pandas is touched only when tool code shows one of its frames. Runs in the tool kernel.
"""

from __future__ import annotations

import sys
from typing import Any

ROWS, COLUMNS, WIDTH = 20, 16, 120
LISTED = 40
"""How many columns are listed with their types; the others are counted."""


def describe_frames(ipython: Any) -> None:
    """Have ``ipython`` (an ``InteractiveShell``) show pandas' data frames as text in this way."""
    plain = ipython.display_formatter.formatters["text/plain"]
    plain.for_type_by_name("pandas.core.frame", "DataFrame", print_frame)
    plain.for_type_by_name("pandas", "DataFrame", print_frame)


def print_frame(frame: Any, printer: Any, cycle: bool) -> None:
    """Print a frame for IPython (``IPython.lib.pretty``): at most 20 rows, then the types."""
    pandas = sys.modules["pandas"]
    options = {"display.max_rows": ROWS, "display.max_columns": COLUMNS, "display.width": WIDTH}
    shown = [part for option in options.items() for part in option]
    with pandas.option_context(*shown, "display.show_dimensions", True):
        printer.text(repr(frame))
    types = list(frame.dtypes.items())
    names = [f"{name} {dtype}" for name, dtype in types[:LISTED]]
    more = f", and {len(frame.columns) - LISTED} more columns" if len(frame.columns) > LISTED else ""
    printer.text(f"\ndtypes: {', '.join(names)}{more}")
