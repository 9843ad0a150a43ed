"""``python -m harness_nb.cli`` is ``harness-nb``."""

from harness_nb.cli import main

main()
