"""Proposals for a notebook that misses a name: which definition to put before the cell that needs it, and where from.

Looked for in this order: the cells of the notebook itself, the record of its session, well-known imports. A proposal is
a new cell; no cell that is there is changed. ``repairing`` asks round by round and runs the result. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness_nb.types import JsonObject, Status
from harness_nb.verify.document import KEY, CodeCell, Document, parse_document
from harness_nb.verify.explanation import defines
from harness_nb.verify.names import definition
from harness_nb.verify.past import PastCell
from harness_nb.verify.splice import insert_element

MODULES = """
os sys re json math time random csv pickle glob shutil itertools functools collections subprocess tarfile zipfile gzip
io hashlib statistics string textwrap copy operator urllib warnings logging pathlib requests
"""

IMPORTS = {
    "np": "import numpy as np",
    "numpy": "import numpy",
    "pd": "import pandas as pd",
    "pandas": "import pandas",
    "plt": "import matplotlib.pyplot as plt",
    "mpl": "import matplotlib as mpl",
    "matplotlib": "import matplotlib",
    "sns": "import seaborn as sns",
    "sp": "import scipy as sp",
    "stats": "from scipy import stats",
    "sklearn": "import sklearn",
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "torchvision": "import torchvision",
    "tf": "import tensorflow as tf",
    "keras": "import keras",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "xr": "import xarray as xr",
    "pl": "import polars as pl",
    "px": "import plotly.express as px",
    "go": "import plotly.graph_objects as go",
    "sm": "import statsmodels.api as sm",
    "smf": "import statsmodels.formula.api as smf",
    "nx": "import networkx as nx",
    "Image": "from PIL import Image",
    "tqdm": "from tqdm.auto import tqdm",
    "Path": "from pathlib import Path",
    "defaultdict": "from collections import defaultdict",
    "Counter": "from collections import Counter",
    "dataclass": "from dataclasses import dataclass",
    "partial": "from functools import partial",
    "datetime": "from datetime import datetime",
    "timedelta": "from datetime import timedelta",
    "display": "from IPython.display import display",
    **{name: f"import {name}" for name in MODULES.split()},
}
"""What a name nearly always means, where nothing else defines it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """``source`` in a new cell before cell ``number`` would define ``name``; ``origin`` says where it comes from."""

    name: str
    number: int
    source: str
    origin: str

    def __str__(self) -> str:
        lines = self.source.strip().splitlines()
        code = lines[0] if len(lines) == 1 else f"{lines[0]} … ({len(lines)} lines)"
        return f"before cell {self.number}, define `{self.name}` ({self.origin}): {code}"


def propose(name: str, cell: CodeCell, document: Document, past: Sequence[PastCell]) -> Proposal | None:
    """A definition of ``name`` for ``cell``, which misses it; ``None`` if there is none to be found."""
    for origin, source in (*_from_cells(name, cell, document.cells), *_from_past(name, cell, past)):
        return Proposal(name, cell.number, source, origin)
    if name in IMPORTS:
        return Proposal(name, cell.number, IMPORTS[name], "what this name usually stands for")
    return None


def apply_proposal(document: Document, proposal: Proposal) -> Document:
    """The notebook with the proposed cell in it."""
    place = document.cells[proposal.number - 1].index
    source = f"# added by harness-nb verify --repair: {proposal.origin}\n{proposal.source.strip()}"
    metadata = {KEY: {"repair": {"name": proposal.name, "origin": proposal.origin}}}
    cell: JsonObject = {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": []}
    if int(document.data.get("nbformat_minor") or 0) >= 5:
        taken = {str(other.get("id")) for other in document.data["cells"]}
        name = "".join(character if character.isascii() else "-" for character in proposal.name)[:40]
        numbers = (f"repair-{name}" + (f"-{number}" if number else "") for number in range(len(taken) + 1))
        cell["id"] = next(cell_id for cell_id in numbers if cell_id not in taken)
    cell["source"] = source.splitlines(keepends=True)
    return parse_document(document.path, insert_element(document.text, ["cells"], place, cell))


def _from_cells(name: str, cell: CodeCell, cells: Sequence[CodeCell]) -> list[tuple[str, str]]:
    """Definitions in other cells of the notebook, the best first.

    The best is the one that was run last before ``cell`` was, as the counts say; else the nearest below.
    """
    others = [other for other in cells if other.number != cell.number and defines(other, name)]
    count = cell.execution_count
    before = [other for other in others if count and other.execution_count and other.execution_count < count]
    before.sort(key=lambda other: -(other.execution_count or 0))
    below = [other for other in others if other.number > cell.number and other not in before]
    above = [other for other in others if other.number < cell.number and other not in before]
    found = []
    for other in [*before, *below, *reversed(above)]:
        statements = definition(name, other.source)
        if statements:
            place = "below" if other.number > cell.number else "above"
            source = "\n".join(statement.source for statement in statements)
            found.append((f"copied from cell {other.number}, {place}", source))
    return found


def _from_past(name: str, cell: CodeCell, past: Sequence[PastCell]) -> list[tuple[str, str]]:
    """Definitions in the record, the best first: run before ``cell`` was and ended well, else any, the latest first."""
    earlier = past
    for position, other in enumerate(past):
        if cell.call_id and other.call_id == cell.call_id:
            earlier = past[:position]
    latest = earlier[::-1]
    ordered = sorted(latest, key=lambda other: other.status is not Status.OK)
    found = []
    for other in [*ordered, *(other for other in reversed(past) if other not in earlier)]:
        statements = definition(name, other.source)
        if statements:
            found.append((other.words, "\n".join(statement.source for statement in statements)))
    return found
