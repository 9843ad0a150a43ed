"""Calls in a Python cell that write, delete or move files, or leave the workspace. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from harness_nb.policy import paths
from harness_nb.policy.code.names import argument
from harness_nb.policy.code.site import Site
from harness_nb.policy.findings import UNKNOWN, Finding, Report
from harness_nb.policy.shell.removing import is_cache


def remove_file(site: Site) -> Report:
    """``os.remove`` and its like."""
    return _deleting(site, argument(site.node, 0, "path"))


def unlink_path(site: Site) -> Report:
    """``Path.unlink`` and ``Path.rmdir``."""
    assert isinstance(site.node.func, ast.Attribute)
    return _deleting(site, site.node.func.value)


def _deleting(site: Site, node: ast.expr | None) -> Report:
    path = site.names.path(node)
    if path is None:
        why = "deletes files whose names are only known when it runs; write the names or their folder out"
        return site.ask("delete what is not known:", why)
    if path.strip(f"/.{UNKNOWN}") == "" and path.startswith("."):
        return site.ask("delete all files here", "deletes all files here; name the files that are to go")
    return _written(site, path)


def remove_folder(site: Site) -> Report:
    """``shutil.rmtree``."""
    path = site.names.path(argument(site.node, 0, "path"))
    if path is not None and (is_cache(path) or path.startswith("/tmp/x")):
        return Report()
    why = "deletes folders; delete files by name and empty folders with rmdir, or leave it and say what can go"
    verdict = "deny" if path in ("/", "~") else "ask"
    finding = Finding("deny" if verdict == "deny" else "ask", "delete folders with shutil.rmtree", why, site.part)
    return Report((finding,))


def _written(site: Site, path: str | None) -> Report:
    if path is None:
        return Report()
    finding = paths.writing(path.rstrip(UNKNOWN), site.part, site.ground)
    return Report((finding,) if finding else (), (), (path,))


def open_file(site: Site) -> Report:
    """``open`` for writing."""
    mode_node = argument(site.node, 1, "mode")
    mode = site.names.text(mode_node) if mode_node is not None else "r"
    path = site.names.path(argument(site.node, 0, "file", "path"))
    return _written(site, path) if mode is None or re.search(r"[wax+]", mode) else Report()


def open_path(site: Site) -> Report:
    """``Path.open`` for writing."""
    assert isinstance(site.node.func, ast.Attribute)
    mode_node = argument(site.node, 0, "mode")
    mode = site.names.text(mode_node) if mode_node is not None else "r"
    writes = mode is not None and re.fullmatch(r"[rwaxbt+]*[wax+][rwaxbt+]*", mode)
    return _written(site, site.names.path(site.node.func.value)) if writes else Report()


def write_path(site: Site) -> Report:
    """``Path.write_text`` and its like: the path is what the method is called on."""
    assert isinstance(site.node.func, ast.Attribute)
    return _written(site, site.names.path(site.node.func.value))


def writes_to(place: int, *names: str) -> Callable[[Site], Report]:
    """A function that writes to its argument at ``place``."""

    def written_argument(site: Site) -> Report:
        return _written(site, site.names.path(argument(site.node, place, *names)))

    return written_argument


def move_file(site: Site) -> Report:
    """``os.rename``, ``shutil.move``: both ends count."""
    source, target = argument(site.node, 0, "src"), argument(site.node, 1, "dst")
    return _written(site, site.names.path(source)) + _written(site, site.names.path(target))


def link_file(site: Site) -> Report:
    """``os.symlink``: a link to outside is a way out."""
    source = site.names.path(argument(site.node, 0, "src"))
    outside = source is not None and paths.leaves_workspace(paths.localised(source, site.ground))
    return writes_to(1, "dst")(site) + (_written(site, source) if outside else Report())


def change_mode(site: Site) -> Report:
    """``os.chmod``."""
    mode = argument(site.node, 1, "mode")
    if isinstance(mode, ast.Constant) and isinstance(mode.value, int) and not mode.value & 0o6000:
        path = site.names.path(argument(site.node, 0, "path"))
        if path is not None:
            return _written(site, path)
    return site.ask("os.chmod", "changes the rights of files that are not named, or lets a file run as another user")


def expand_user(site: Site) -> Report:
    """``~`` in a path, or the home folder."""
    path = site.names.text(site.node)
    if path is None and isinstance(site.node.func, ast.Attribute):
        path = site.names.path(site.node.func.value)
    finding = paths.reading(path, site.part, site.ground) if path else None
    return Report((finding,)) if finding else Report()


def change_folder(site: Site) -> Report:
    """``os.chdir``: what comes after it is in that folder."""
    path = site.names.path(argument(site.node, 0, "path"))
    local = paths.localised(path, site.ground) if path else None
    if local and paths.leaves_workspace(local) and not local.startswith("/tmp"):
        return site.ask(f"reach outside the workspace: {local}", f"leaves the workspace for {local}", local)
    return Report()
