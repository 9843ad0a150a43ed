"""The command line ``harness-nb``: the same engine for scripts and CI. ``main`` is the entry point.

Exit codes: 0 finished and every check passed; 1 ended without an accepted finish; 2 the call is wrong and nothing was
started; 130 interrupted. Progress for people goes to stderr, the final answer to stdout; ``--json`` prints events on
stdout.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    try:
        from harness_nb.cli.main import commands
        from harness_nb.cli.shielding import hide_environment

        hide_environment()
        commands(prog_name="harness-nb")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.stderr.write(f"harness-nb: {error}\n")
        sys.exit(1)
