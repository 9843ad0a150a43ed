"""Notebook files for the tests, written by hand: what a cell would print is known without running it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PYTHON3 = {"display_name": "Python 3", "language": "python", "name": "python3"}


def printed(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"name": name, "output_type": "stream", "text": text.splitlines(keepends=True)}


def value(text: str, **more: Any) -> dict[str, Any]:
    data = {"text/plain": text, **{key.replace("_", "/"): content for key, content in more.items()}}
    return {"data": data, "execution_count": 1, "metadata": {}, "output_type": "execute_result"}


def shown(kind: str, content: Any) -> dict[str, Any]:
    return {"data": {kind: content}, "metadata": {}, "output_type": "display_data"}


def raised(ename: str, evalue: str) -> dict[str, Any]:
    return {"ename": ename, "evalue": evalue, "output_type": "error", "traceback": [f"{ename}: {evalue}"]}


def code(source: str, *outputs: dict[str, Any], count: int | None = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": count,
        "id": "",
        "metadata": metadata,
        "outputs": list(outputs),
        "source": source.splitlines(keepends=True),
    }


def prose(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "", "metadata": {}, "source": [text]}


def notebook(*cells: dict[str, Any], minor: int = 5, kernel: str = "python3", number: bool = True) -> dict[str, Any]:
    """A notebook of these cells; with ``number`` the counts follow the order, and the ids are c1, c2, …"""
    made, count = [], 0
    for position, cell in enumerate(cells, start=1):
        cell = dict(cell)
        if cell["cell_type"] == "code" and cell["execution_count"] is not None and number:
            count += 1
            cell["execution_count"] = count
        cell["id"] = cell["id"] or f"c{position}"
        if minor < 5:
            del cell["id"]
        made.append(cell)
    return {
        "cells": made,
        "metadata": {"kernelspec": {**PYTHON3, "name": kernel}},
        "nbformat": 4,
        "nbformat_minor": minor,
    }


def write(path: Path, *cells: dict[str, Any], **options: Any) -> Path:
    """Write a notebook the way Jupyter does."""
    path.write_text(json.dumps(notebook(*cells, **options), indent=1, ensure_ascii=False) + "\n")
    return path


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded
