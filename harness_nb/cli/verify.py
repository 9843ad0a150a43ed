"""``harness-nb verify``: one notebook verified from the command line; the report on stdout, progress on stderr."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click

from harness_nb.errors import UsageError
from harness_nb.verify import Options, Verdict, verify

WRONG_CALL, INTERRUPTED = 2, 130


def verify_command() -> click.Command:
    """The command ``verify``, to be added to the group."""

    @click.command("verify")
    @click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
    @click.option("--repair", is_flag=True, help="propose missing definitions, in NAME.repaired.ipynb")
    @click.option("--in-place", is_flag=True, help="run in the notebook's folder itself, not in a copy")
    @click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="seconds for one cell")
    @click.option("--kernel", default="", metavar="NAME", help="kernel spec; else the notebook's own")
    @click.option("--no-sandbox", is_flag=True, help="run without bubblewrap")
    @click.option("--no-write", is_flag=True, help="leave the notebook and its folder as they are")
    @click.option("--json", "as_json", is_flag=True, help="print the verdict as one JSON object")
    def command(path: Path, as_json: bool, **given: Any) -> None:
        """Run the notebook PATH top to bottom in a fresh kernel and compare its outputs cell by cell.

        The verdict is written into the notebook. Exit codes: 0 reproduced, 1 not, 2 the file cannot be read.
        """
        sys.exit(run_verify(path, as_json=as_json, **given))

    return command


def run_verify(
    path: Path,
    *,
    repair: bool = False,
    in_place: bool = False,
    timeout: float | None = None,
    kernel: str = "",
    no_sandbox: bool = False,
    no_write: bool = False,
    as_json: bool = False,
) -> int:
    """Verify a notebook and print the report; the exit code."""
    options = Options(
        repair=repair,
        in_place=in_place,
        kernel=kernel,
        sandbox=not no_sandbox,
        write=not no_write,
        progress=(lambda line: None) if as_json else (lambda line: click.echo(line, err=True)),
        **({} if timeout is None else {"timeout": timeout}),
    )
    try:
        verdict = asyncio.run(verify(path, options))
    except UsageError as error:
        click.echo(f"harness-nb: {error}", err=True)
        return WRONG_CALL
    except KeyboardInterrupt:
        click.echo("harness-nb: interrupted; nothing was written", err=True)
        return INTERRUPTED
    click.echo(json.dumps(told(verdict), indent=1) if as_json else "\n".join(verdict.lines()))
    return verdict.exit_code


def told(verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON, with the repair, if there is one."""
    whole: dict[str, Any] = {"path": str(verdict.path), **verdict.as_json(), "written": verdict.written}
    if verdict.repaired is not None:
        proposals = [
            {"name": p.name, "before_cell": p.number, "source": p.source, "origin": p.origin}
            for p in verdict.repaired.proposals
        ]
        whole["repaired"] = {"proposals": proposals, **told(verdict.repaired.verdict)}
    return whole
