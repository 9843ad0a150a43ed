"""Which number of a log line is what, worked out from the text between the numbers. ``lines`` keeps the plans.

Understood are names before numbers (``loss: 0.4``, ``val loss 0.4``, ``'loss': 0.4``), counters (``Epoch [3/30]``,
``step=100``, ``[3, 2000]``, ``100/600``), units and percent signs behind numbers. A line is a line of metrics only if
little else is in it. It imports only ``names``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from harness_nb.outputs.metrics import names

_WORD = r"[A-Za-z_][\w@/.+-]*(?:'s)?"
_BEFORE = re.compile(
    rf"(?P<middle>.*?)(?P<phrase>{_WORD}(?: {_WORD})*)?['\"]?\s*(?P<sign>(?:[:=]|->)?)\s*(?P<opener>[\[(#'\"]*)\s*"
)
_UNIT = re.compile(
    r"\s?(?P<unit>%|[A-Za-zµ]+/(?:s|sec|second|step|batch|it|iter|epoch)"
    r"|[nmuµ]?s|secs?|seconds?|mins?|minutes?|hrs?|hours?|h|[kMGT]i?B|[kMGTB])(?!\w)"
)
_COUNTED = re.compile(r"\s?(?P<counted>epochs|steps|iters|iterations|its|batches|episodes|rounds)\b")
_CLOSERS = re.compile(r"[\s)\]'\"}>,;|·•*-]*")
_TOTAL = re.compile(r" ?/ ?| of ")
_WORDS = re.compile(r"[A-Za-z]\w+")
_ASIDE = re.compile(r"\([^()]*\)")
_MOST_WORDS = 3
_MOST_FIELDS = 16
_LONGEST_NAME = 40


class Place(NamedTuple):
    """A counter: the number ``at``, and the one that is its total."""

    level: str
    label: str
    at: int
    total: int | None = None


class Field(NamedTuple):
    """A value: the number ``at``; divided by the number ``total`` if there is one."""

    name: str
    at: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What the numbers of a line are. ``shape`` tells lines of this make from others."""

    counters: tuple[Place, ...]
    fields: tuple[Field, ...]
    percents: frozenset[str]
    shape: tuple[str, ...]


@dataclass
class _Draft:
    """A plan in the making, and what of the line is not understood: words, and numbers without a name."""

    counted: bool
    counters: list[Place] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    percents: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    bare: int = 0
    phase: str = ""

    def count(self, level: str, label: str, at: int, total: int | None = None) -> None:
        """A counter; the first of its level counts."""
        if all(place.level != level for place in self.counters):
            self.counters.append(Place(level, label, at, total))

    def add(self, name: str, at: int, total: int | None, percent: bool) -> None:
        """A value. A name that comes again, without a phase of its own, is not kept."""
        if self.phase and names.kind_of(name) != "rate" and not names.words_of(name) & set(names.PHASES):
            name = f"{self.phase}_{name}"
        if any(known.name == name for known in self.fields) or len(self.fields) == _MOST_FIELDS:
            return
        ratio = total if names.kind_of(name) == "score" else None
        self.fields.append(Field(name, at, ratio))
        if percent:
            self.percents.add(name)

    def leave(self, text: str) -> None:
        """Words that are not understood, but for those that name a phase, and what is in parentheses."""
        for word in _WORDS.findall(text):
            self.phase = names.PHASES.get(word.lower(), self.phase)
        for word in _WORDS.findall(_ASIDE.sub("", text)):
            if word.lower() not in names.PHASES and word.lower() not in names.AROUND:
                self.words.append(word)

    def finish(self) -> Plan | None:
        """The plan, if this is a line of metrics, or one that says which epoch it is."""
        fields = tuple(self.fields)
        counted = self.counted or bool(self.counters)
        known = [known.name for known in fields if names.is_known(known.name)]
        if fields:
            most_words, most_bare = (_MOST_WORDS + len(known) - 1 if known else 1), (len(known) if counted else 0)
            enough = counted or any(names.kind_of(name) != "rate" for name in known)
        else:
            most_words, most_bare = 2, 0
            enough = any(place.level == "epoch" for place in self.counters)
        if not enough or len(self.words) > most_words or self.bare > most_bare:
            return None
        shape = (*(place.level for place in self.counters), *(known.name for known in fields))
        if not counted:
            shape = (*shape, *(f"~{word}" for word in self.words))
        return Plan(tuple(self.counters), fields, frozenset(self.percents), shape)


def make_plan(literals: tuple[str, ...], clocks: tuple[bool, ...], counted: bool) -> Plan | None:
    """The plan for lines with these texts before, between and after their numbers; ``None`` if they are no metrics.

    ``clocks`` says which numbers are times of day or durations; ``counted`` that the step is known otherwise.
    """
    draft = _Draft(counted)
    count, at, rest = len(clocks), 0, literals[0]
    while at < count:
        total = None
        if at + 1 < count and not clocks[at + 1] and _TOTAL.fullmatch(literals[at + 1]):
            total = at + 1
        last = at if total is None else total
        after = literals[last + 1]
        unit = _UNIT.match(after) or (_COUNTED.match(after) if total is not None else None)
        if clocks[at]:
            draft.leave(_named(rest).group("middle"))
        elif at == 0 and rest == "[" and count > 1 and literals[1].strip() == "," and literals[2].startswith("]"):
            draft.count("epoch", "epoch", 0)
            draft.count("step", "step", 1)
            last, after = 1, literals[2]
        elif rest.strip() != "(" or not after.lstrip("%").startswith(")"):
            _place(draft, rest, after, unit.group().strip() if unit else "", at, total)
        rest = after[unit.end() :] if unit else after
        if at == 0 and not literals[0] and rest.startswith(": "):
            rest = rest[1:]
        rest = rest[_CLOSERS.match(rest).end() :]  # type: ignore[union-attr]
        at = last + 1
    draft.leave(rest)
    return draft.finish()


def _named(text: str) -> re.Match[str]:
    match = _BEFORE.fullmatch(text)
    assert match is not None, "every text matches"
    return match


def _place(draft: _Draft, text: str, after: str, unit: str, at: int, total: int | None) -> None:
    """Find out what the number ``at`` is by the ``text`` before it and the ``after`` it."""
    match = _named(text)
    draft.leave(match["middle"])
    words = (match["phrase"] or "").split()
    sign = bool(match["sign"])
    if not words:
        _place_unnamed(draft, match, after, unit, at, total)
        return
    own = _name_length(words, sign)
    level = names.counter_level(words[-1].lower(), total is not None)
    name = _join(words[len(words) - own :])
    draft.leave(" ".join(words[: len(words) - own]))
    if level is not None and not unit:
        draft.leave(" ".join(words[len(words) - own : -1]))
        draft.words = [word for word in draft.words if word.lower() not in names.QUALIFIERS]
        draft.count(level, names.singular(words[-1].lower()), at, total)
    elif (unit and unit != "%") or names.is_beside(name) or len(name) > _LONGEST_NAME:
        if not sign and not names.is_beside(name):
            draft.leave(name)
    elif names.is_known(name) or sign:
        if words[0].lower() in names.PHASES and own > 1:
            draft.phase = names.PHASES[words[0].lower()]
        draft.add(name, at, total, unit == "%")
    else:
        draft.leave(name)
        draft.bare += 1


def _name_length(words: list[str], sign: bool) -> int:
    """How many of the last words are the name: qualifiers belong to it, before a sign two other words may, too."""
    own = 1
    while own < len(words):
        word = words[-own - 1].lower().rstrip(".")
        free = sign and own < 3 and word not in names.STOP_WORDS and names.counter_level(words[-1].lower()) is None
        if word not in names.QUALIFIERS and not word.endswith("'s") and not free:
            break
        own += 1
    return own


def _join(words: list[str]) -> str:
    """A name in one word: ``Training Loss`` → ``train_loss``, ``valid_0's l2`` → ``valid_0_l2``."""
    first, *others = (word.lower().replace("'s", "").strip("._-+/") for word in words)
    return "_".join([names.PHASES.get(first, first) if others else first, *others])


def _place_unnamed(draft: _Draft, match: re.Match[str], after: str, unit: str, at: int, total: int | None) -> None:
    """A number without a name: a counter by where it stands, or nothing that is known."""
    first = at == 0 and not match["middle"]
    level = names.counter_level(unit, total is not None)
    if level is not None:
        draft.count(level, names.singular(unit), at, total)
    elif "[" in match["opener"] and total is not None:
        draft.count("step", "step", at, total)
    elif first and match["opener"] == "[" and after.startswith("]"):
        draft.count("step", "iteration", at)
    elif first and not match["opener"] and total is not None:
        draft.count("step", "step", at, total)
    elif first and not match["opener"] and after.startswith(": "):
        draft.count("step", "iteration", at)
    elif not unit or unit == "%":
        draft.bare += 1
