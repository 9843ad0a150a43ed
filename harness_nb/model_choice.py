"""The models that a session's settings name. The session asks here when it opens and when its settings change."""

from __future__ import annotations

import os

from harness_nb.models import default_model_spec, resolve_model
from harness_nb.ports import Model
from harness_nb.settings import Settings


def model_for(settings: Settings) -> Model:
    """The model that the settings name, or the default one.

    Raises:
        UsageError: if there is no such model, or its key is missing.
    """
    return resolve_model(
        settings.model or default_model_spec(os.environ),
        directory=settings.directory,
        base_url=settings.base_url,
        environment=os.environ,
    )
