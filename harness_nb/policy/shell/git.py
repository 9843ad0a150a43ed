"""What git commands do that cannot be undone, or that reaches others. Pure.

Source of the options: git's manual pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness_nb.policy.findings import UNKNOWN
from harness_nb.policy.shell.dangers import Danger, has_option, positional

_TAKING = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"}
_RUNS = re.compile(
    r"(?i)^(core\.(sshcommand|pager|editor|hookspath|fsmonitor|askpass|gitproxy)|alias\.|credential\.|sequence\.editor|pager\."
    r"|diff\..*(external|command|textconv)|merge\..*driver|filter\.|gpg\.|difftool\.|mergetool\.|uploadpack\.|http\.proxy|url\."
    r"|include)"
)
_DISCARDS = "discards changes that are in no commit; commit or stash them first, or leave them"
_REWRITES = "rewrites history; make a new commit instead"


def git_dangers(words: list[str]) -> list[Danger]:
    """What there is against a git command; ``words`` begin with ``git``."""
    place, found = 1, list[Danger]()
    while place < len(words) and words[place].startswith("-"):
        option = words[place]
        value = words[place + 1] if option in _TAKING and place + 1 < len(words) else ""
        setting = value if option in ("-c", "--config-env") else option[2:] if option.startswith("-c") else ""
        if _RUNS.match(setting) or option.startswith("--exec-path="):
            found.append(Danger("git -c", "sets what git runs; leave the setting out"))
        place += 2 if option in _TAKING else 1
    rest = words[place:]
    if not rest:
        return found
    if UNKNOWN in rest[0]:
        return [*found, Danger("run:", "runs a git command that is only known when it runs; write it out")]
    check = _CHECKS.get(rest[0])
    return [*found, *(check(rest) if check else [])]


def _push(words: list[str]) -> list[Danger]:
    forced = has_option(words, "f", "--force", "--force-with-lease", "--mirror", "--delete", "-d", "--prune")
    if forced or any(word.startswith(("+", ":")) for word in words[1:]):
        return [Danger("git push --force", "overwrites or deletes what others have in their repository")]
    return [
        Danger("git push", "publishes commits to another repository; commit only, and leave the push to the person")
    ]


def _reset(words: list[str]) -> list[Danger]:
    if has_option(words, "", "--hard", "--merge", "--keep"):
        return [Danger("git reset --hard", _DISCARDS)]
    return _if_unknown(words)


def _clean(words: list[str]) -> list[Danger]:
    if has_option(words, "n", "--dry-run"):
        return []
    return [Danger("git clean -f", "deletes files that are in no commit")]


def _branch(words: list[str]) -> list[Danger]:
    if has_option(words, "DMCf", "--force"):
        return [Danger("git branch -D", "deletes or moves a branch, whose commits may be in no other")]
    return _if_unknown(words)


def _tag(words: list[str]) -> list[Danger]:
    return [Danger("git tag -d", "deletes or moves a tag")] if has_option(words, "df", "--delete", "--force") else []


def _checkout(words: list[str]) -> list[Danger]:
    if has_option(words, "b", "--orphan") and not has_option(words, "f", "--force"):
        return []
    plain = positional(words)
    paths = "--" in words or len(plain) > 1 or any(_like_file(word) for word in plain)
    if paths or has_option(words, "fBp", "--force", "--patch", "--ours", "--theirs", "--pathspec-from-file"):
        return [Danger("git checkout -- FILES", _DISCARDS)]
    return _if_unknown(words)


def _like_file(word: str) -> bool:
    return word == "." or word.startswith((":/", ":(", "./", "*")) or bool(re.search(r"\.[a-z]\w{0,5}$|\*|/$", word))


def _switch(words: list[str]) -> list[Danger]:
    forced = has_option(words, "fC", "--force", "--discard-changes", "--force-create")
    return [Danger("git switch -f", _DISCARDS)] if forced else []


def _restore(words: list[str]) -> list[Danger]:
    if has_option(words, "S", "--staged") and not has_option(words, "W", "--worktree"):
        return []
    return [Danger("git restore", _DISCARDS)]


def _stash(words: list[str]) -> list[Danger]:
    return (
        [Danger("git stash drop", "deletes changes that are in no commit")]
        if words[1:2] in (["drop"], ["clear"])
        else []
    )


def _commit(words: list[str]) -> list[Danger]:
    return [Danger("git commit --amend", _REWRITES)] if has_option(words, "", "--amend") else []


def _rebase(words: list[str]) -> list[Danger]:
    return [] if has_option(words, "", "--abort", "--quit") else [Danger("git rebase", _REWRITES)]


def _rewrite(words: list[str]) -> list[Danger]:
    return [Danger(f"git {words[0]}", _REWRITES)]


def _reflog(words: list[str]) -> list[Danger]:
    return [Danger("git reflog expire", _REWRITES)] if words[1:2] in (["expire"], ["delete"]) else []


def _gc(words: list[str]) -> list[Danger]:
    return [Danger("git gc --prune", "deletes commits for good")] if has_option(words, "", "--prune") else []


def _update_ref(words: list[str]) -> list[Danger]:
    return [Danger("git update-ref", "moves or deletes a branch, whose commits may be in no other")]


def _remote(words: list[str]) -> list[Danger]:
    changes = ("add", "set-url", "remove", "rm", "rename", "prune", "set-head")
    if words[1:2] and words[1] in changes:
        return [Danger("git remote", "changes which other repositories this one is tied to")]
    return _if_unknown(words)


def _config(words: list[str]) -> list[Danger]:
    keys = positional(words)
    if has_option(words, "l", "--list", "--get", "--get-all", "--get-regexp") or keys[:1] in (["get"], ["list"]):
        return []
    if len(keys) > 1 and has_option(words, "", "--global", "--system", "--file"):
        return [Danger("git config --global", "changes git's settings outside of this repository")]
    if len(keys) > 1 and any(_RUNS.match(key) for key in keys):
        return [Danger("git config", "sets what git runs")]
    return []


def _rm(words: list[str]) -> list[Danger]:
    if has_option(words, "", "--cached") or not has_option(words, "rf", "--force"):
        return []
    return [Danger("git rm -r", "deletes files of the project")]


def _worktree(words: list[str]) -> list[Danger]:
    forced = words[1:2] == ["remove"] and has_option(words, "f", "--force")
    return [Danger("git worktree remove --force", _DISCARDS)] if forced else []


def _mail(words: list[str]) -> list[Danger]:
    return [Danger(f"git {words[0]}", "sends commits to others")]


def _if_unknown(words: list[str]) -> list[Danger]:
    if any(word.startswith(UNKNOWN) for word in words[1:]):
        return [Danger("run:", "has words that are only known when it runs; write them out")]
    return []


_CHECKS: dict[str, Callable[[list[str]], list[Danger]]] = {
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "branch": _branch,
    "tag": _tag,
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "stash": _stash,
    "commit": _commit,
    "rebase": _rebase,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
    "replace": _rewrite,
    "reflog": _reflog,
    "gc": _gc,
    "prune": _rewrite,
    "update-ref": _update_ref,
    "remote": _remote,
    "config": _config,
    "rm": _rm,
    "worktree": _worktree,
    "send-email": _mail,
    "request-pull": _mail,
}
