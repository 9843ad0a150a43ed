"""Whole jobs that run without a key: a scripted model, real code in the real tool kernel, real checks.

The command line runs them (``harness-nb demo``); tests run them through a session. What a demo ships as data (scripts,
scorer, files for the workspace) is in the folder of its name.
"""

from harness_nb.demos.checkout_demo import CHECKOUT
from harness_nb.demos.cifar10_demo import CIFAR10
from harness_nb.demos.demo import Act, Demo
from harness_nb.demos.digits_demo import DIGITS
from harness_nb.demos.pick import pick_demo

DEMOS: dict[str, Demo] = {demo.name: demo for demo in (CHECKOUT, CIFAR10, DIGITS)}
"""All demos, by name."""

__all__ = ["DEMOS", "Act", "Demo", "pick_demo"]
