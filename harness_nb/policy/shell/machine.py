"""Commands that change the machine, its services, or who a process runs as. Pure."""

from __future__ import annotations

import re

from harness_nb.policy.shell.dangers import Danger, has_option, positional, value_of


def rights_of_others(words: list[str]) -> list[Danger]:
    """``sudo`` and its like."""
    return [Danger(words[0], "asks for another user's rights; do it without")]


def damage(words: list[str]) -> list[Danger]:
    """Commands that nobody has a use for in a workspace."""
    return [Danger(words[0], "can damage the machine or switch it off", "deny")]


def machine_change(words: list[str]) -> list[Danger]:
    """Commands that change how the machine is set up."""
    return [Danger(words[0], "changes how the machine is set up")]


def mount_dangers(words: list[str]) -> list[Danger]:
    """``mount``, which only lists when it has no words."""
    return machine_change(words) if positional(words) else []


def sysctl_dangers(words: list[str]) -> list[Danger]:
    """``sysctl`` that sets."""
    sets = has_option(words, "wp", "--write", "--load", "--system") or any("=" in word for word in words[1:])
    return machine_change(words) if sets else []


def disk_dangers(words: list[str]) -> list[Danger]:
    """``fdisk`` and its like, which may only list."""
    return [] if has_option(words, "l", "--list") else damage(words)


def dd_dangers(words: list[str]) -> list[Danger]:
    """``dd`` onto a device."""
    target = next((word[3:] for word in words if word.startswith("of=")), "")
    harmless = target in ("/dev/null", "/dev/stdout") or not target.startswith("/dev/")
    return [] if harmless else [Danger("dd to a device", "can damage the machine", "deny")]


def service_dangers(words: list[str]) -> list[Danger]:
    """``systemctl``, ``service``, ``launchctl``: looking is passed over."""
    reading = r"^(status|is-\w+|show|cat|list.*|print.*|get-default|help)$"
    if any(re.match(reading, word) for word in positional(words)) or has_option(words, "", "--version", "--status-all"):
        return []
    return [Danger(words[0], "starts, stops or changes services of the machine")]


def schedule_dangers(words: list[str]) -> list[Danger]:
    """``crontab``, ``at``: what runs later, when nobody looks."""
    if words[0] == "crontab" and words[1:] == ["-l"]:
        return []
    return [Danger(words[0], "has something run later, when nobody looks")]


def container_dangers(words: list[str]) -> list[Danger]:
    """``docker`` and ``podman``: looking is passed over."""
    reading = r"^(ps|images|logs|inspect|version|info|stats|top|diff|history|search|port|help|ls|list|df|context)$"
    if any(re.match(reading, word) for word in positional(words)[:2]) or has_option(words[:2], "v", "--version"):
        return []
    return [Danger(words[0], "works with containers, which can reach all of the machine")]


def history_dangers(words: list[str]) -> list[Danger]:
    """``history -c``, ``shred``: what wipes traces."""
    if words[0] == "history" and not has_option(words, "cdw"):
        return []
    return [Danger(words[0], "wipes what cannot be had back")]


def archive_dangers(words: list[str]) -> list[Danger]:
    """``tar`` that runs commands or writes anywhere."""
    runs = has_option(words, "", "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script")
    if runs or value_of(words, "-I") is not None or has_option(words, "P", "--absolute-names"):
        return [Danger(f"{words[0]} with a command", "runs a command for what it packs, or writes outside")]
    return []


def editor_dangers(words: list[str]) -> list[Danger]:
    """Editors and pagers with commands, which can run anything."""
    if has_option(words, "cs", "--cmd", "--eval", "--execute") or any(word.startswith("+") for word in words[1:]):
        return [Danger(f"{words[0]} -c", "gives an editor commands, which can run anything")]
    return []


_SED_EXECUTES = re.compile(
    r"(^|[;{}\n]|[\d$/])\s*e(\s|$)|(^|[;{}\n]|[\d$/])\s*[wW]\s|s(\W)(?:\\.|.)*?\4(?:\\.|.)*?\4\w*[ew]"
)
_PROGRAM_RUNS = re.compile(
    r"system|exec|spawn|popen|`|\bqx\b|unlink|rmtree|rmdir|remove|File\.delete|FileUtils|child_process|socket|Socket|"
    r"https?:|fetch\(|require\(|\beval\b|open\s*[(|]|\brm\b|writeFile|chmod|kill|fork|Net::|LWP|IO\.|print\s*[>|]|\|\s*\"|getline|>\s*\""
)


def sed_dangers(words: list[str]) -> list[Danger]:
    """``sed`` scripts that run commands or write files."""
    plain = positional(words)
    scripts = [each for each in (value_of(words, "-e", "--expression"), *plain[:1]) if each]
    if any(_SED_EXECUTES.search(script) for script in scripts):
        return [Danger("sed that runs commands", "has a sed script that runs commands or writes files")]
    return []


def program_dangers(words: list[str]) -> list[Danger]:
    """Programs in other languages on the command line: what may run commands, delete or connect is asked about."""
    name = words[0]
    code = value_of(words, "-e", "-E", "-r", "--eval", "-pe", "-ne", "-pie", "-ane", "-lane", "-lne", "--print", "-p")
    if "awk" in name:
        code = next(iter(positional(words)), None)
    texts = [word for word in words[1:] if " " in word or "(" in word] if code is None else [code, *words[1:]]
    if any(_PROGRAM_RUNS.search(text) for text in texts):
        return [Danger(f"{name} that runs commands", f"has a {name} program that may run commands, delete or connect")]
    return []
