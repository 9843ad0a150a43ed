"""``scripted:FILE.json`` as a classifier: judgements that are written down. For demos and tests, without a network.

A script is a JSON list. Each entry is a judgement, or a failure::

    [{"risk": 0.1, "authorised": 0.95},
     {"when": "rm -rf", "risk": 1.6, "authorised": 0.8, "risk_probabilities": [0.1, 0.3, 0.5, 0.1]},
     {"when": "unknown", "error": {"kind": "refusal"}}]

``when`` is a regular expression: the first entry whose expression is found in the tool's name or the source of the
call is the answer. Where none is, the entries without ``when`` come in order, and the last one repeats.
``risk_probabilities`` may stand in for ``risk``. An ``error`` is one of a script of replies (see ``scripted``), and is
not tried again; figures may be wrong (``NaN``, 7), which gives no verdict, as it would with a model. A judgement costs
nothing, unless its ``usage`` says otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError, field_validator, model_validator

from harness_nb.errors import ModelError, UsageError
from harness_nb.models.scripted import ScriptedError, ScriptPart, make_error
from harness_nb.policy.judging import NoVerdictError, expected_level, read_figure
from harness_nb.ports import Question
from harness_nb.types import Judgement, Usage

EXAMPLE = '[{"risk": 0.1, "authorised": 0.95}, {"when": "rm -rf", "risk": 1.6, "authorised": 0.8}]'


class ScriptedJudgement(ScriptPart):
    """One entry of a script."""

    when: str | None = None
    risk: float | None = None
    authorised: float | None = None
    risk_probabilities: list[float] = Field(default_factory=list)
    usage: Usage | None = None
    error: ScriptedError | None = None

    @field_validator("when")
    @classmethod
    def _is_an_expression(cls, when: str | None) -> str | None:
        try:
            re.compile(when or "")
        except re.error as error:
            raise ValueError(f"'when' is no regular expression: {error}") from error
        return when

    @model_validator(mode="after")
    def _says_something(self) -> ScriptedJudgement:
        whole = self.authorised is not None and (self.risk is not None or bool(self.risk_probabilities))
        if whole == (self.error is not None):
            raise ValueError("it needs 'risk' (0 to 3) and 'authorised' (0 to 1), or an 'error'")
        return self


class ScriptedJudge:
    """See ``ports.Judge``. ``name`` is the spec. Keeps what it was asked in ``asked``."""

    def __init__(self, name: str, script: Sequence[ScriptedJudgement]) -> None:
        self.name = name
        self.asked: list[Question] = []
        self._fitting = [entry for entry in script if entry.when is not None]
        self._in_order = [entry for entry in script if entry.when is None]

    async def judge(self, question: Question) -> tuple[Judgement, Usage]:
        """See ``ports.Judge``."""
        self.asked.append(question)
        entry = self._next(question)
        usage = entry.usage or Usage()
        if usage.cost_usd is None:
            usage = usage.model_copy(update={"cost_usd": 0.0})
        if entry.error:
            raise make_error(entry.error)
        try:
            if entry.risk_probabilities:
                risk, probabilities = expected_level(entry.risk_probabilities)
            else:
                risk, probabilities = read_figure(entry.risk, "risk", 3), ()
            authorised = read_figure(entry.authorised, "authorised", 1)
        except ValueError as error:
            raise NoVerdictError(f"{self.name}: {error}", usage) from error
        judgement = Judgement(
            risk=risk, authorised=authorised, risk_probabilities=probabilities, method="scripted", model=self.name
        )
        return judgement, usage

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _next(self, question: Question) -> ScriptedJudgement:
        text = f"{question.call.name}\n{question.source or json.dumps(question.call.arguments)}"
        for entry in self._fitting:
            if re.search(entry.when or "", text):
                return entry
        if not self._in_order:
            raise ModelError(f"{self.name} has no judgement for this call: no 'when' fits, and each entry has one.")
        return self._in_order.pop(0) if len(self._in_order) > 1 else self._in_order[0]


def read_judgements(path: Path) -> tuple[ScriptedJudgement, ...]:
    """The entries of a script.

    Raises:
        UsageError: if the file is not there or is no script of judgements; the text names file, entry and field.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The script {path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The script {path} is not JSON: {error}.") from error
    if not isinstance(values, list) or not values:
        raise UsageError(f"The script {path} must be a JSON list of at least one judgement, like {EXAMPLE}.")
    script = []
    for number, value in enumerate(values, start=1):
        try:
            script.append(ScriptedJudgement.model_validate(value))
        except ValidationError as error:
            details = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
            raise UsageError(
                f"The script {path}, judgement {number} of {len(values)}: {details.removeprefix(': ')}. "
                f"A script of judgements is like {EXAMPLE}."
            ) from error
    return tuple(script)
