"""``harness-nb audit``: what a session did, and who let it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from harness_nb.audit import audit_session, report
from harness_nb.errors import UsageError
from harness_nb.record import latest_session

WRONG_CALL = 2


def audit_command() -> click.Command:
    """The command ``audit``, to be added to the group."""

    @click.command("audit")
    @click.argument("session_id", metavar="[SESSION]", required=False)
    @click.option("--json", "whole", is_flag=True, help="print everything as one JSON object")
    @click.option("--dir", "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
    def command(session_id: str | None, whole: bool, directory: Path) -> None:
        """List every call of SESSION (the latest one, if none is named): decision, reason, approval and effect.

        Read from the record alone; the journal or the notebook is enough. Exit codes: 0; 2 if there is no such session.
        """
        workspace = directory.resolve()
        try:
            audit = audit_session(workspace, session_id or latest_session(workspace))
        except UsageError as error:
            click.echo(f"harness-nb: {error}", err=True)
            sys.exit(WRONG_CALL)
        for text in audit["warnings"]:
            click.echo(f"harness-nb: {text}", err=True)
        click.echo(json.dumps(audit, indent=1) if whole else "\n".join(report(audit)))

    return command
