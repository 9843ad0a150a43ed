"""The command line ``harness-nb``: the same engine for scripts and CI. ``main`` is the entry point.

Exit codes: 0 finished and every check passed; 1 ended without an accepted finish; 2 the call is wrong and nothing was
started; 130 interrupted. Progress for people goes to stderr, the final answer to stdout; ``--json`` prints events on
stdout.
"""

from harness_nb.cli.main import main

__all__ = ["main"]
