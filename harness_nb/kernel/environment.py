"""The environment that a tool kernel starts with: an allow list, and no credentials ever.

What is not named here is not passed on: tool code must not find keys that a provider, a cloud or a shell profile put
into the environment of the harness. What the person grants by name is ``Granted``. Pure; ``process`` and the sandbox
use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from harness_nb.errors import UsageError

ALLOWED = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "TMPDIR", "LANG", "LANGUAGE", "TERM",
    "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHASHSEED", "MPLCONFIGDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TORCH_HOME", "HF_HOME", "SCIKIT_LEARN_DATA", "KERAS_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY",
    "SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
    "HARNESS_NB_CIFAR10",
}  # fmt: skip
"""Names that pass, compared in upper case."""

ALLOWED_PREFIXES = (
    "LC_", "CONDA_", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "BLIS_", "VECLIB_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_",
    "HARNESS_NB_DEMO_",
)  # fmt: skip

SECRET = re.compile(
    r"API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|(^|_)KEY$|TOKEN|SECRET|PASSW|CREDENTIAL|_AUTH$"
    r"|^(OPENAI|ANTHROPIC|AWS|AZURE|GOOGLE)_",
    re.IGNORECASE,
)
"""Names that never pass by themselves."""


class Granted(dict[str, str]):
    """Variables that the person has granted to tool code by name, whatever they look like."""


def kernel_environment(source: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What of ``source`` a kernel may see, and ``extra`` on top.

    Raises:
        UsageError: if ``extra`` names a variable that looks like a credential, and is not ``Granted``.
    """
    kept = {name: value for name, value in source.items() if _allowed(name) and not SECRET.search(name)}
    refused = [] if isinstance(extra, Granted) else looks_secret(extra or {})
    if refused:
        raise UsageError(
            f"{', '.join(refused)} looks like a credential and is not given to tool code; --secret NAME grants a "
            "variable of the environment"
        )
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", **(extra or {})}


def refuse_credentials(kernel: str, variables: Mapping[str, str], granted: Mapping[str, str] | None) -> None:
    """Refuse what the kernel spec ``kernel`` sets and looks like a credential, unless the person has granted it.

    Raises:
        UsageError: with the names and the way out.
    """
    if refused := looks_secret(set(variables) - set(granted or {})):
        raise UsageError(
            f"The kernel spec {kernel!r} sets {', '.join(refused)}, which looks like a credential and is not given to "
            "tool code. Take it out of the env of its kernel.json; --secret NAME grants a variable of the environment."
        )


def looks_secret(names: Iterable[str]) -> list[str]:
    """Those of the names that look like credentials, in order."""
    return sorted(name for name in names if SECRET.search(name))


def _allowed(name: str) -> bool:
    upper = name.upper()
    return upper in ALLOWED or upper.startswith(ALLOWED_PREFIXES)
