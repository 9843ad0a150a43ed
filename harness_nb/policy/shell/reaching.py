"""Commands that send data out, fetch, publish, or install. Pure."""

from __future__ import annotations

import re

from harness_nb.policy.findings import UNKNOWN, words_in
from harness_nb.policy.shell.dangers import Danger, has_option, positional, value_of

NETWORK = words_in("curl wget fetch http https xh aria2c lynx nc ncat netcat socat ftp scp ssh gh gsutil aws")
"""Commands that bring something from the network."""

_SENDS = "sends data out over the network; keep what it sends in the workspace"
_LOOPBACK = re.compile(
    r"^(?:[a-z]+://)?(?:[^/@]*@)?(localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0)(?=[:/?#]|$)", re.I
)
_CURL_DATA = words_in(
    "--data --data-raw --data-binary --data-urlencode --data-ascii --form --form-string --json "
    "--upload-file --url-query --mail-from --mail-rcpt --quote"
)
_CURL_TAKING = words_in(
    "-o -H -A -e -u -x -m -w -b -c -K -C -r -y -Y -z -E -D -U --output --header --user-agent "
    "--referer --user --proxy --max-time --connect-timeout --retry --retry-delay --write-out --cookie "
    "--cookie-jar --config --range --cacert --cert --key --output-dir --create-dirs-mode --resolve "
    "--limit-rate --dump-header --proto --tls-max --ciphers -X --request -d -F -T"
)
_LOOKS = re.compile(
    r"^(ls|list.*|get(-.*)?|describe.*|show.*|view|status|version|help|head-.*|logs?|images|ps|inspect|info|diff|checks?"
    r"|top|explain|history|stats|search|search-.*|whoami|auth|config|plan|validate|fmt|output|env|api-resources)$"
)
_METHODS = {"POST", "PUT", "PATCH", "DELETE"}


def is_loopback(address: str) -> bool:
    """Whether an address is that of this machine."""
    return bool(_LOOPBACK.match(address))


def curl_dangers(words: list[str]) -> list[Danger]:
    """``curl`` that sends something, or whose address is not known."""
    addresses = _addresses(words)
    if addresses and all(is_loopback(address) for address in addresses):
        return []
    method = (value_of(words, "-X", "--request") or "").upper()
    if has_option(words, "dFTQ", *_CURL_DATA) or method in _METHODS or UNKNOWN in method:
        return [Danger("send data out", _SENDS)]
    if value_of(words, "-K", "--config") is not None:
        return [Danger("curl --config", "takes its orders from a file; write the options out")]
    return _unknown_address(addresses)


def _addresses(words: list[str]) -> list[str]:
    found, place = list[str](), 1
    while place < len(words):
        word = words[place]
        if word == "--url" and place + 1 < len(words):
            found.append(words[place + 1])
        elif not word.startswith("-"):
            found.append(word)
        place += 2 if word in _CURL_TAKING or word == "--url" else 1
    return found


def _unknown_address(addresses: list[str]) -> list[Danger]:
    if any(UNKNOWN in address for address in addresses):
        why = "fetches an address that is only known when it runs, and what is put in may carry data out; write it out"
        return [Danger("fetch an address that is not known:", why)]
    return []


def wget_dangers(words: list[str]) -> list[Danger]:
    """``wget`` that sends something, or whose address is not known."""
    addresses = [word for word in positional(words) if "/" in word or "." in word or UNKNOWN in word]
    if addresses and all(is_loopback(address) for address in addresses):
        return []
    method = (value_of(words, "--method") or "").upper()
    if has_option(words, "", "--post-data", "--post-file", "--body-data", "--body-file") or method in _METHODS:
        return [Danger("send data out", _SENDS)]
    return _unknown_address(addresses)


def httpie_dangers(words: list[str]) -> list[Danger]:
    """HTTPie and xh, which send what looks like a field."""
    plain = positional(words)
    if any(word in _METHODS for word in plain) or any(re.search(r"[^:/]=|:=|@", word) for word in plain[1:]):
        return [Danger("send data out", _SENDS)]
    return _unknown_address(plain)


def send_dangers(words: list[str]) -> list[Danger]:
    """Commands whose purpose is to talk to other machines."""
    name = words[0]
    plain = positional(words)
    if name in ("rsync", "rclone") and not any(re.search(r"^[^/]+:|^\w+://", word) for word in plain):
        return (
            []
            if not has_option(words, "", "--delete", "--remove-source-files")
            else [Danger(f"{name} --delete", "deletes whole folders of files")]
        )
    if name in ("nc", "ncat", "netcat", "telnet") and any(is_loopback(word) for word in plain):
        return []
    if name == "ssh":
        return [Danger("ssh", "runs commands on another machine")]
    return [Danger("send data out", _SENDS)]


def cloud_dangers(words: list[str]) -> list[Danger]:
    """Command lines of services; reading is passed over."""
    plain = positional(words)
    commands = plain[:3]
    api = commands[:1] == ["api"] and not has_option(words, "XfF", "--method", "--field", "--raw-field", "--input")
    if api or not commands or any(_LOOKS.match(word) for word in commands):
        return []
    name = " ".join([words[0], *commands[:1]])
    return [Danger(shown_name(name), "changes something outside of this machine or outside of the workspace")]


def shown_name(name: str) -> str:
    """A name with nothing unknown in it, for people."""
    return name.replace(UNKNOWN, "…")


def pip_dangers(words: list[str]) -> list[Danger]:
    """``pip`` and ``uv pip`` that go beyond the environment or the package index."""
    plain = positional(words)
    if plain[:1] not in (["install"], ["download"], ["wheel"]):
        return []
    if has_option(words, "", "--user", "--break-system-packages", "--target", "--prefix", "--root", "--system"):
        return [Danger("pip install elsewhere", "installs outside of the environment; leave that option out")]
    if has_option(words, "", "--index-url", "--extra-index-url", "--find-links", "--trusted-host"):
        return [Danger("pip install from elsewhere", "installs from another place than the usual package index")]
    if value_of(words, "-i") is not None or any(re.search(r"://|\+ssh", word) for word in plain[1:]):
        return [Danger("pip install from elsewhere", "installs from another place than the usual package index")]
    return []


def system_install_dangers(words: list[str]) -> list[Danger]:
    """Package managers of the system and of other languages, where they change something."""
    reading = (
        r"^(list|search|show|info|policy|depends|rdepends|query|outdated|leaves|config|help|-Q\w*|-Ss\w*|-Si|--version|"
    )
    reading += r"-[lLsSq]\w*|--list)$"
    plain = positional(words) or words[1:2]
    if not plain or re.match(reading, plain[0]):
        return []
    return [Danger(f"{words[0]} {shown_name(plain[0])}", "installs or removes programs outside of the environment")]


def node_dangers(words: list[str]) -> list[Danger]:
    """``npm``, ``yarn`` and ``pnpm``: publishing, and installing for all."""
    plain = positional(words)
    if plain[:1] and plain[0] in (
        "publish",
        "unpublish",
        "deprecate",
        "owner",
        "token",
        "adduser",
        "login",
        "dist-tag",
        "access",
    ):
        return [Danger(f"{words[0]} {plain[0]}", "publishes, or changes what is published")]
    if has_option(words, "g", "--global") or plain[:1] == ["global"]:
        return [Danger(f"{words[0]} -g", "installs or removes programs outside of the environment")]
    if plain[:1] and plain[0] in ("exec", "x", "dlx", "create", "init") and len(plain) > 1:
        return remote_run_dangers([words[0], *plain[1:]])
    return []


def remote_run_dangers(words: list[str]) -> list[Danger]:
    """Commands that fetch a program and run it at once."""
    return [Danger(words[0], "fetches a program from the network and runs it at once")]


def publish_dangers(words: list[str]) -> list[Danger]:
    """Commands of build tools: publishing is asked about."""
    publishing = {"publish", "upload", "upload-large-folder", "push", "yank", "login", "owner", "register", "release"}
    place = next((word for word in words[1:4] if word in publishing), None)
    return [Danger(f"{words[0]} {place}", "publishes, or changes what is published")] if place else []


def toolchain_dangers(words: list[str]) -> list[Danger]:
    """``cargo``, ``go``, ``gem`` and their like: building is passed over."""
    plain = positional(words)
    if plain[:1] in (["install"], ["uninstall"]):
        return [Danger(f"{words[0]} {plain[0]}", "installs or removes programs outside of the environment")]
    return publish_dangers(words)
