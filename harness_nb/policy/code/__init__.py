"""Python cells: what is in them, and what there is against it. Pure."""

from harness_nb.policy.code.examination import examine

__all__ = ["examine"]
