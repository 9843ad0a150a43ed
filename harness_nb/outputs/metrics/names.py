"""The words of training logs: which names are metrics, which way is better, what counts steps, what does not matter.

``lines`` and ``series`` ask it. It imports nothing of ours. The words are those that the common frameworks print.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Kind = Literal["loss", "score", "rate", "other"]
"""What a column is: lower is better, higher is better, a learning rate, or neither."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LOSSES = _words(
    "loss nll bce ce mse rmse mae mape smape msle rmsle logloss mlogloss binlogloss perplexity ppl wer cer fid"
)
SCORES = _words(
    "acc accuracy top1 top5 f1 fbeta auc auroc auprc aucpr r2 precision recall iou miou dice bleu rouge psnr ssim ndcg "
    "mrr mcc reward rew"
)
_UNSURE_LOSSES = _words("error err merror cost deviance l1 l2")
_UNSURE_SCORES = _words("score map ap return kappa elbo")
_BESIDE = _words(
    "time eta elapsed runtime second seconds sec secs scale weight weights steps epochs batches iterations size "
    "samples mem memory seed workers version flos tokens patience progress remaining duration fps throughput"
)
_BESIDE_NAMES = _words("data best total dt v_num mfu ms num count gpu port pid ms/batch speed batch")

PHASES = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "dev"}
PHASES |= {"test": "test", "testing": "test", "eval": "eval", "evaluation": "eval"}
QUALIFIERS = frozenset(PHASES) | _words(
    "avg average mean running batch total last best cur current smoothed ema learning global overall final"
)
STOP_WORDS = _words(
    "a an the of with and or at is was are to in on for from by our its this that than new now after before until "
    "not no set got than lower higher"
)
AROUND = _words("set error errors metrics results result phase epoch")
"""Words that go with a phase: ``Test set: …``, ``Test Error: …``."""

_MAJOR = frozenset(("epoch", "ep"))
_MINOR = _words("step iter iteration it batch episode round update timestep global_step globalstep generation")
_PLURALS = _words("epochs steps iters iterations its batches episodes rounds updates timesteps")

_SPLIT = re.compile(r"[^a-z0-9]+")


def counter_level(word: str, with_total: bool = False) -> str | None:
    """``epoch`` for what counts passes over the data, ``step`` for what counts within them; ``None`` for other words.

    A plural is a setting (``epochs: 10``) unless the number has a total (``3/10 epochs``).
    """
    if word in _PLURALS:
        return counter_level(singular(word)) if with_total else None
    return "epoch" if word in _MAJOR else "step" if word in _MINOR else None


def singular(word: str) -> str:
    """``batches`` → ``batch``, ``steps`` → ``step``; other words as they are."""
    if word not in _PLURALS:
        return word
    return word[:-2] if word.endswith("ches") else word[:-1]


@lru_cache(maxsize=256)
def words_of(name: str) -> frozenset[str]:
    """The words of a name, and those that end in a number without it: ``val_acc1`` → val, acc1, acc."""
    words = [word for word in _SPLIT.split(name.lower()) if word]
    return frozenset([*words, *(word.rstrip("0123456789") for word in words if len(word) > 3)]) - {""}


@lru_cache(maxsize=256)
def kind_of(name: str) -> Kind:
    """What the column ``name`` is."""
    words = words_of(name)
    if "lr" in words or {"learning", "rate"} <= words:
        return "rate"
    if words & (LOSSES | _UNSURE_LOSSES) or any(word.endswith("loss") for word in words):
        return "loss"
    if words & (SCORES | _UNSURE_SCORES):
        return "score"
    return "other"


@lru_cache(maxsize=256)
def is_known(name: str) -> bool:
    """Whether ``name`` alone says that its number is a metric.

    ``error`` and the like do so only with a phase: ``error 404`` is none, ``val_error 0.1`` is.
    """
    words = words_of(name)
    if is_beside(name):
        return False
    if words & (LOSSES | SCORES) or kind_of(name) == "rate" or any(word.endswith("loss") for word in words):
        return True
    return bool(words & _UNSURE_LOSSES and words & set(PHASES))


@lru_cache(maxsize=256)
def is_beside(name: str) -> bool:
    """Whether ``name`` is a time, a size or a setting: not worth a column."""
    return name in _BESIDE_NAMES or bool(words_of(name) & _BESIDE)


@lru_cache(maxsize=256)
def is_held_out(name: str) -> bool:
    """Whether ``name`` is of data that was not trained on."""
    return bool(words_of(name) & {word for word, phase in PHASES.items() if phase != "train"})
