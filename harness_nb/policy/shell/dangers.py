"""One thing against a command, and how options and words are told apart. Pure; the families of commands share it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness_nb.policy.findings import UNKNOWN


class Danger(NamedTuple):
    """What there is against a command: its kind for people, why, and whether it is asked about or denied."""

    kind: str
    why: str
    verdict: Literal["ask", "deny"] = "ask"


def has_option(words: list[str], letters: str, *long: str) -> bool:
    """Whether a command has an option: one of ``letters``, also in a group such as ``-xf``, or one of ``long``.

    Long options may be shortened and may carry a value.
    """
    for word in words[1:]:
        if word == "--":
            return False
        if word in long:
            return True
        if word.startswith("--"):
            name = word.split("=", 1)[0]
            if len(name) > 4 and any(option.startswith(name) for option in long if option.startswith("--")):
                return True
        elif len(word) > 1 and word[0] == "-" and any(letter in word[1:] for letter in letters):
            return True
    return False


def positional(words: list[str]) -> list[str]:
    """The words of a command that are no options."""
    if "--" in words:
        place = words.index("--")
        return positional(words[:place]) + words[place + 1 :]
    return [word for word in words[1:] if not word.startswith("-") or word == "-"]


def value_of(words: list[str], *options: str) -> str | None:
    """The value of the first of ``options`` that is given, as the next word or behind ``=`` or the letter."""
    for place, word in enumerate(words):
        for option in options:
            if word == option:
                return words[place + 1] if place + 1 < len(words) else ""
            if word.startswith(f"{option}=") and option.startswith("--"):
                return word.split("=", 1)[1]
            if len(option) == 2 and word.startswith(option) and not word.startswith("--"):
                return word[2:]
    return None


def open_words(words: list[str]) -> list[str]:
    """The words that could be anything, options too, because they are only known when the command runs."""
    return [word for word in words[1:] if word.startswith(UNKNOWN)]
