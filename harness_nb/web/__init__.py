"""The web for a model: ``web_fetch`` runs here, in the harness, and not in the tool kernel.

The tool kernel has no network as a rule, and where it has one, code there could change the checks. ``fetching`` brings
a page from a public address, ``pages`` makes text of it.
"""

from harness_nb.web.fetching import Fetcher

__all__ = ["Fetcher"]
