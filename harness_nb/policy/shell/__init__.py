"""Shell scripts: what is in them, and what there is against it. Pure."""

from harness_nb.policy.shell.examination import examine, examine_words

__all__ = ["examine", "examine_words"]
