"""Evaluation: how well the policy (rules and classifier) agrees with calls that people have labelled."""

from harness_nb.evaluation.labelled import LabelledCall, read_labelled, shipped_calls
from harness_nb.evaluation.policy_trial import Outcome, Trial, run_trial

__all__ = ["LabelledCall", "Outcome", "Trial", "read_labelled", "run_trial", "shipped_calls"]
