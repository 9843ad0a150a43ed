"""The kernel spec ``harness-sandbox`` as Jupyter starts it: for session notebooks that a person opens and runs.

``python -m harness_nb.kernel.opened -f CONNECTION_FILE``. Over the ipc transport the kernel has no network; over TCP,
which Jupyter uses by default, its messages need the machine's network, so that it is on then.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from harness_nb.errors import HarnessError
from harness_nb.kernel.confinement import Additions, Confinement
from harness_nb.kernel.environment import kernel_environment
from harness_nb.kernel.sandbox import sandboxed
from harness_nb.kernel.spec import LAUNCHER
from harness_nb.store import FOLDER


def command_for(connection_file: Path, folder: Path, environment: dict[str, str]) -> list[str]:
    """The command line of the kernel; ``folder`` is the notebook's, and the workspace is the one that it belongs to.

    Raises:
        UsageError: where there is no sandbox.
    """
    told = json.loads(connection_file.read_text())
    over_ipc = told.get("transport") == "ipc"
    workspace = folder.parent if folder.name == FOLDER else folder
    sockets = (Path(told["ip"]).parent,) if over_ipc else ()
    additions = Additions(read_only=(connection_file,), writable=sockets)
    confinement = Confinement(workspace, network="off" if over_ipc else "on", additions=additions)
    command = [sys.executable, str(LAUNCHER), "-f", str(connection_file)]
    return sandboxed(command, confinement, environment=environment, directory=folder)


def main() -> None:
    """Become the kernel of the connection file that is named."""
    connection_file = Path(sys.argv[sys.argv.index("-f") + 1]).resolve()
    environment = kernel_environment(os.environ)
    try:
        command = command_for(connection_file, Path.cwd().resolve(), environment)
    except HarnessError as error:
        sys.exit(str(error))
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    main()
