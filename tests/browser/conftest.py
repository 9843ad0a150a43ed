"""A real JupyterLab on loopback and a headless Chromium, for the browser tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from lab_server import TOKEN, Lab, free_port, wait_for
from playwright.sync_api import Page, sync_playwright

from harness_nb.ui import here_words

CHROMIUM = os.environ.get("HARNESS_NB_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
)
EXTENSIONS = here_words.PACKAGED.parent
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> str:
    if CHROMIUM is None:
        assert not os.environ.get("CI"), "the browser tests must run in CI; install chromium"
        pytest.skip("no Chromium; set HARNESS_NB_CHROMIUM to its path")
    return CHROMIUM


@pytest.fixture(scope="session")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root, home = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("home")
    settings = home / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("JUPYTER", "JPY", "IPYTHON"))}
    environment |= {
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
    }
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}"]
    command += [f"--LabApp.extra_labextensions_path={EXTENSIONS}"]  # as it is here, whatever copy is installed
    command += ["--LabApp.expose_app_in_browser=True"]
    with (home / "server.log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for(f"http://127.0.0.1:{port}/api?token={TOKEN}", server, home / "server.log")
        yield Lab(f"http://127.0.0.1:{port}", root)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture(scope="module")
def loaded(chromium: str, lab: Lab) -> Iterator[Page]:
    """A page with JupyterLab. Loading it takes seconds, so the tests of a module share it.

    No wider: while it is open, playwright's event loop runs in this thread, and no other test could have one.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1200, "height": 4000})  # cells out of sight are not in the page
        page.set_default_timeout(45_000)
        lab.load(page)
        yield page
        browser.close()


@pytest.fixture
def page(loaded: Page, lab: Lab) -> Iterator[Page]:
    """The page, with no notebook open."""
    yield loaded
    lab.clear(loaded)
