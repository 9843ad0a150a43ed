"""Paths, as text: which lie outside the workspace, hold credentials, or are run later by something else. Pure.

Symbolic links are not followed here; the functions in the tool kernel and the sandbox do that.
"""

from __future__ import annotations

import posixpath
import re

from pathspec import GitIgnoreSpec

from harness_nb.policy.findings import PLAIN, UNKNOWN, Finding, Ground, shown, words_in

_SCRATCH = ("/tmp/", "/var/tmp/", "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/fd/", "/dev/tty")
_HOMES = ("~", "/home/", "/root/", "/Users/")

_CREDENTIALS = re.compile(
    r"(^|/)(\.ssh|\.aws|\.gnupg|\.netrc|\.pgpass|\.pypirc|\.npmrc|\.git-credentials|\.kube|\.azure|\.password-store"
    r"|\.config/(gcloud|gh|hub|op)|\.docker/config\.json|\.cache/huggingface/token|\.huggingface/token"
    r"|id_(rsa|dsa|ecdsa|ed25519)|\.env(\.(?!example|sample|template|dist|schema)[\w.-]+)?|credentials\.json"
    r"|service[-_]account[\w-]*\.json)(/|$)|^/etc/(shadow|gshadow|sudoers)|^/proc/[^/]+/environ$|\.(pem|p12|pfx|keystore)$"
)
_DEVICES = re.compile(r"^/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|dm-|md|mapper/|mem|kmem|port)")

RUN_LATER = (
    ("conftest.py", "pytest runs it before the tests"),
    ("sitecustomize.py", "every Python runs it when it starts"),
    ("usercustomize.py", "every Python runs it when it starts"),
    ("*.pth", "every Python runs it when it starts"),
    (".git/hooks/**", "git runs it"),
    (".githooks/**", "git runs it"),
    (".husky/**", "git runs it"),
    (".git/**", "it is git's own; git commands change it"),
    (".gitmodules", "git fetches what it names"),
    (".github/workflows/**", "the project's automation runs it with the project's rights"),
    (".github/actions/**", "the project's automation runs it with the project's rights"),
    (".gitlab-ci.yml", "the project's automation runs it with the project's rights"),
    (".circleci/**", "the project's automation runs it with the project's rights"),
    ("Jenkinsfile", "the project's automation runs it with the project's rights"),
    (".pre-commit-config.yaml", "git runs it"),
    (".envrc", "a shell runs it on entering the folder"),
    (".vscode/**", "an editor runs it"),
    (".idea/**", "an editor runs it"),
    (".devcontainer/**", "an editor runs it"),
    (".ipython/**", "every IPython runs it when it starts"),
    ("ipython_config.py", "every IPython runs it when it starts"),
    ("jupyter_*config.py", "the Jupyter server runs it"),
    ("kernel.json", "Jupyter starts kernels by it"),
)
"""Files that something else runs or is configured by, with what does."""

SHELL_STARTS = words_in(
    ".bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .kshrc "
    ".cshrc .tcshrc .xinitrc .xprofile .inputrc .pythonrc .pythonstartup .Rprofile .gitconfig .vimrc "
    ".tmux.conf"
)
_RUN_LATER = [(GitIgnoreSpec.from_lines([pattern]), why) for pattern, why in RUN_LATER]

RECORD_GLOBS = ("harness_sessions/**",)
"""The record of the sessions; no tool writes there."""

_RECORD = GitIgnoreSpec.from_lines(RECORD_GLOBS)


def leaves_workspace(path: str) -> bool:
    """Whether a path, read as text, is absolute, begins in a home folder, or climbs above where it starts."""
    return path.startswith(("/", "~", "\\")) or posixpath.normpath(path).split("/")[0] == ".."


def localised(path: str, ground: Ground) -> str:
    """A path within the workspace as a relative one; others as they are."""
    if ground.workspace and (path + "/").startswith(ground.workspace.rstrip("/") + "/"):
        return posixpath.relpath(path, ground.workspace)
    return path


def is_credentials(path: str) -> bool:
    """Whether a path is where passwords and keys are kept."""
    return bool(_CREDENTIALS.search(path)) and not re.search(r"\s", path) and not path.endswith(".pub")


def runs_later(path: str) -> str:
    """What runs or reads the file at a later time; empty for nothing that is known."""
    name = posixpath.basename(path)
    if name in SHELL_STARTS:
        return "shells and tools run it when they start"
    inside = posixpath.normpath(path).lstrip("/~")
    return next((why for spec, why in _RUN_LATER if inside and spec.match_file(inside)), "")


def reading(path: str, part: str, ground: Ground) -> Finding | None:
    """What there is against reading a path."""
    path = localised(path, ground)
    if is_credentials(path):
        why = f"uses {shown(path)}, where passwords or keys are kept; do without what is in it"
        return Finding("ask", f"read credentials: {shown(path)}", why, part, path=path)
    if path.startswith(_HOMES) or (leaves_workspace(path) and not path.startswith("/")):
        why = f"reaches outside the workspace: {shown(path)}"
        return Finding("ask", f"reach outside the workspace: {shown(path)}", why, part, path=path)
    return None


def writing(path: str, part: str, ground: Ground) -> Finding | None:
    """What there is against writing to a path, or deleting it."""
    path = localised(path, ground)
    if _DEVICES.match(path) or path == "/proc/sysrq-trigger":
        return Finding("deny", f"write to {path}", f"writes to {path}, which can damage the machine", part)
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return Finding("ask", "send data out", "sends data over the network", part)
    if any((path + "/").startswith(each) or path == each for each in _SCRATCH) and "/.." not in path:
        return None
    if not leaves_workspace(path):
        inside = posixpath.normpath(path)
        if _RECORD.match_file(inside):
            why = f"writes to {inside}, the record of the sessions, which nobody may change"
            return Finding("deny", f"write to {inside}", why, part)
        if ground.read_only.match_file(inside):
            why = f"writes to {inside}, which is read-only in this session"
            return Finding("deny", f"write to {inside}", why, part)
    if is_credentials(path):
        why = f"writes to {shown(path)}, where passwords or keys are kept"
        return Finding("ask", f"write credentials: {shown(path)}", why, part, path=path)
    if posixpath.basename(path) == "pyproject.toml":
        why = "writes pyproject.toml, which may hold the rules of this session; use search_replace for it"
        return Finding("ask", f"write {shown(path)}", why, part, path=path)
    if why := runs_later(path):
        return Finding("ask", f"write {shown(path)}", f"writes {shown(path)}: {why}", part, path=path)
    if leaves_workspace(path):
        why = f"writes outside the workspace: {shown(path)}"
        return Finding("ask", f"write outside the workspace: {shown(path)}", why, part, path=path)
    if path.startswith((UNKNOWN, f"-{UNKNOWN}")) and PLAIN not in path[:1]:
        why = "writes to a path that is only known when it runs; write the path out"
        return Finding("ask", "write to a path that is not known:", why, part)
    return None
