"""Random numbers in code: what sets a generator, what draws from one, and what does so without a seed. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from harness_nb.export import purity
from harness_nb.export.effects import Effects


def seeded_by(effects: Effects) -> set[str]:
    """The global generators that a statement sets."""
    return {
        purity.SEEDING[name] for name, call in effects.calls if name in purity.SEEDING and (call.args or call.keywords)
    }


def drawn_by(effects: Iterable[Effects]) -> set[str]:
    """The global generators that code draws from."""
    return {state for one in effects for name, call in one.calls if (state := _state_of(name, call))}


def _state_of(name: str, call: ast.Call) -> str:
    module, _, rest = name.partition(".")
    last = name.rsplit(".", 1)[-1]
    if name in ("sample", "rvs") and isinstance(call.func, ast.Attribute):  # of a table, of a distribution
        return "" if any(word.arg == "random_state" for word in call.keywords) else "numpy.random"
    if name in purity.SEEDING or name in purity.OWN_GENERATORS or not rest:
        return ""
    if module == "random":
        return "random"
    if name.startswith("numpy.random."):
        return "numpy.random"
    given = {word.arg: word.value for word in call.keywords}
    if "generator" in given or "rng" in given:
        return ""
    if module == "torch":
        return "" if rest.split(".")[0] in purity.TORCH_WITHOUT_CHANCE else "torch"
    if module == "sklearn" and last in purity.SKLEARN_CHANCE and "random_state" not in given:
        shuffled = "KFold" not in last or getattr(given.get("shuffle"), "value", False)
        return "numpy.random" if shuffled else ""
    if name.startswith("scipy.stats.") and last == "rvs" and "random_state" not in given:
        return "numpy.random"
    return "tensorflow" if module in ("tensorflow", "keras") else ""


def unseeded_generators(effects: Iterable[Effects]) -> set[str]:
    """Generators of their own that code makes without a seed, by dotted name."""
    own = purity.OWN_GENERATORS - {"torch.Generator"}  # which begins with a fixed seed
    return {name for one in effects for name, call in one.calls if name in own and not call.args and not call.keywords}


def seed_calls(effects: Iterable[Effects]) -> set[str]:
    """The places where code gives a seed, as source."""
    found = set()
    for one in effects:
        for name, call in one.calls:
            if name in purity.SEEDING or (name in purity.OWN_GENERATORS and (call.args or call.keywords)):
                found.add(ast.unparse(call))
            words = [word for word in call.keywords if word.arg in ("random_state", "seed")]
            found |= {f"{word.arg}={ast.unparse(word.value)}" for word in words}
    return found
