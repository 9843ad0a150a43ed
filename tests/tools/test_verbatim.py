"""Cells keep their text: no prompt is stripped from it where it is not a prompt."""

from __future__ import annotations

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from harness_nb.tools.verbatim import keep_cells_verbatim


@pytest.fixture
def manager() -> TransformerManager:
    made = TransformerManager()
    keep_cells_verbatim(made)
    keep_cells_verbatim(made)
    return made


@pytest.mark.parametrize(
    "body", [">>> x\n1\n", "In [1]: a\n", "    >>> doc\n    ... more\n", "a\n>>> b\n... c\n", "\n\nfirst\n"]
)
def test_the_text_of_a_cell_magic_is_not_touched(manager: TransformerManager, body: str) -> None:
    assert manager.transform_cell(f"%%writefile a.txt\n{body}") == (
        f"get_ipython().run_cell_magic('writefile', 'a.txt', {body!r})\n"
    )


@pytest.mark.parametrize(
    "code",
    ["x = '''\n>>> a\n'''\n", 'write_file("a", r"""In [1]: a\n>>> b\n""")\n', '"""\n\'\'\'\n"""\ny = """\n>>> b"""\n'],
)
def test_valid_python_is_not_touched(manager: TransformerManager, code: str) -> None:
    assert manager.transform_cell(code) == code


def test_a_pasted_session_still_loses_its_prompts(manager: TransformerManager) -> None:
    assert manager.transform_cell(">>> x = 1\n>>> x\n") == "x = 1\nx\n"
    assert manager.transform_cell("In [1]: x = 1\n") == "x = 1\n"
