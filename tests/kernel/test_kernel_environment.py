"""What passes from the harness to tool code."""

from __future__ import annotations

import pytest

from harness_nb.errors import UsageError
from harness_nb.kernel.environment import kernel_environment

PASS = [
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX", "MPLCONFIGDIR", "OMP_NUM_THREADS",
    "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "http_proxy",
    "HTTPS_PROXY", "no_proxy", "HARNESS_NB_CIFAR10", "HARNESS_NB_DEMO_DATA",
]  # fmt: skip
STAY = [
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "HF_TOKEN", "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AZURE_OPENAI_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "DATABASE_URL",
    "JUPYTER_TOKEN", "SSH_AUTH_SOCK", "CONDA_TOKEN", "HARNESS_NB_DEMO_API_KEY", "CUDA_SECRET", "PS1",
    "HARNESS_NB_MODEL",
]  # fmt: skip


@pytest.mark.parametrize("name", PASS)
def test_what_tool_code_needs_passes(name: str) -> None:
    assert kernel_environment({name: "value"})[name] == "value"


@pytest.mark.parametrize("name", STAY)
def test_all_else_stays_outside(name: str) -> None:
    assert name not in kernel_environment({name: "value"})


def test_additions_pass_unless_they_look_like_credentials() -> None:
    assert kernel_environment({"PATH": "/bin"}, {"EXTRA": "1"})["EXTRA"] == "1"
    with pytest.raises(UsageError, match="MY_API_KEY looks like a credential"):
        kernel_environment({}, {"MY_API_KEY": "x"})
