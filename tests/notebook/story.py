"""A session as a list of events: the story that the tests of the notebook tell.

A task with awkward characters, a shell command, a data frame, an error and its repair, a plot, a denied call, a
malformed call, a finish that a check refuses, and one that passes.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from harness_nb import events as ev
from harness_nb.types import (
    Approval,
    Decision,
    ImagePart,
    Message,
    Part,
    Status,
    TextPart,
    ToolCall,
    Usage,
    text_content,
)

PLOT = base64.b64encode((Path(__file__).parent / "plot.png").read_bytes()).decode()

PROMPT = """\
Train a small classifier on `digits.csv`. The columns `p0` to `p63` are grey values, {label} is the target.

* Keep 20% for validation, budget: $5 and not $6 of GPU time.
* Show the loss as a plot; the loss is $-\\log p_y$.
* Do **not** touch `tests/`.

```python
# the metric that counts
accuracy = (y == y_hat).mean()   # <b>not</b> F1
```
"""

ALLOW = Decision(verdict="allow", reason="inside the workspace", policy="allow_by_default")

ERROR = [
    "\x1b[31m" + "-" * 75 + "\x1b[0m",
    "\x1b[31mKeyError\x1b[0m                                  Traceback (most recent call last)",
    '\x1b[36mCell\x1b[0m \x1b[32mIn[4], line 1\x1b[0m\n\x1b[32m----> 1\x1b[0m y = frame["target"]\n',
    "\x1b[31mKeyError\x1b[0m: 'target'",
]

FRAME_HTML = """\
<div><table border="1" class="dataframe">
  <thead><tr style="text-align: right;"><th></th><th>p0</th><th>p1</th><th>label</th></tr></thead>
  <tbody>
    <tr><th>0</th><td>0</td><td>5</td><td>0</td></tr>
    <tr><th>1</th><td>0</td><td>12</td><td>1</td></tr>
  </tbody>
</table></div>"""


def stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def display(data: dict[str, Any], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": metadata or {}}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Story:
    """Collects events; a reply and an executed call are one line each."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.turn = 0
        self.count = 1

    def add(self, *events: ev.Event) -> None:
        for event in events:
            seq = len(self.events) + 1
            time = f"2026-11-14T09:{seq // 60:02d}:{seq % 60:02d}.000+00:00"
            self.events.append(event.model_copy(update={"seq": seq, "time": time}))

    def reply(self, text: str, *calls: ToolCall) -> None:
        self.turn += 1
        message = Message(
            role="assistant",
            content=text_content(text) if text else (),
            tool_calls=calls,
            usage=Usage(input_tokens=900 * self.turn, output_tokens=80, cached_input_tokens=400 * (self.turn - 1)),
            finish_reason="tool_calls" if calls else "stop",
            model="scripted",
            provider="scripted",
            provider_items=({"type": "reasoning", "encrypted_content": "AbC="},),
        )
        self.add(
            ev.ModelRequested(turn=self.turn, model="scripted:story.json", messages=2 * self.turn),
            ev.ModelReplied(turn=self.turn, message=message, elapsed=1.5),
        )

    def ran(
        self,
        call: ToolCall,
        source: str,
        *outputs: dict[str, Any],
        status: Status = Status.OK,
        content: tuple[Part, ...] = (),
        elapsed: float = 0.25,
        changes: tuple[ev.FileChange, ...] = (),
    ) -> None:
        self.count += 1
        ids: dict[str, Any] = {"call_id": call.call_id, "name": call.name}
        self.add(
            ev.CallDecided(**ids, call=call, source=source, decision=ALLOW),
            ev.CellStarted(**ids, source=source),
            *[ev.CellOutput(**ids, output=output) for output in outputs],
            ev.CellFinished(**ids, status=status, execution_count=self.count, elapsed=elapsed),
            *([ev.FilesChanged(**ids, changes=changes)] if changes else []),
            ev.ResultAdded(**ids, status=status, content=content or text_content("(no output)\n[ok, 0.2 s]")),
        )


def call(call_id: str, name: str, **arguments: Any) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


def begin(story: Story) -> None:
    story.add(
        ev.SessionStarted(
            session_id="20261114-090000-abcd",
            format_version=1,
            harness_version="0.1.0",
            model="scripted:story.json",
            workspace="/home/ada/digits",
            kernel="harness-tools",
            options={"check": ["python check.py"]},
            environment={"Python": "3.12.8 on Linux x86_64", "Processor cores": "4", "Memory": "16 GiB", "GPU": "none"},
        ),
        ev.CellStarted(call_id="setup", name="setup", source='%load_ext harness_nb.tools\nworkspace("..")'),
        ev.CellFinished(call_id="setup", name="setup", status=Status.OK, execution_count=1),
        ev.PromptAdded(prompt=PROMPT),
    )


def look_and_stumble(story: Story) -> None:
    listing = call("c1", "bash", command="head -2 digits.csv | cut -c1-40\nwc -l digits.csv")
    story.reply("I'll look at the data first.", listing)
    story.ran(
        listing,
        f"%%bash\n{listing.arguments['command']}",
        stream("stdout", "p0,p1,p2,p3\n0,5,13,9\n1798 digits.csv\n"),
        content=text_content("p0,p1,p2,p3\n0,5,13,9\n1798 digits.csv\n[ok, 0.2 s]"),
    )
    load = call("c2", "python", code='import pandas as pd\n\nframe = pd.read_csv("digits.csv")\nframe.head(2)')
    wrong = call("c3", "python", code='y = frame["target"]')
    story.reply("", load, wrong)
    frame = {"text/html": FRAME_HTML, "text/plain": "   p0  p1  label\n0   0   5      0\n1   0  12      1"}
    result = {"output_type": "execute_result", "execution_count": 3, "data": frame, "metadata": {}}
    story.ran(load, load.arguments["code"], result, content=text_content(frame["text/plain"] + "\n[ok, 0.2 s]"))
    story.ran(
        wrong,
        wrong.arguments["code"],
        {"output_type": "error", "ename": "KeyError", "evalue": "'target'", "traceback": ERROR},
        status=Status.ERROR,
        content=text_content("KeyError: 'target'\n[error: KeyError, 0.2 s]"),
    )


def train(story: Story) -> None:
    code = 'y = frame["label"]\nmodel, history = fit(frame.drop(columns="label"), y, epochs=8)\nplot(history)'
    fit = call("c4", "python", code=code)
    story.reply("# Training\n\nThe column is called `label`. I train for eight epochs and plot the loss.", fit)
    story.ran(
        fit,
        code,
        stream("stderr", "100%|██████████| 8/8 [00:04<00:00,  1.86it/s]\n"),
        stream("stdout", "epoch 8  loss 0.29  val_loss 0.43  val_acc 0.968\n"),
        display({"image/png": PLOT, "text/plain": "<Figure size 288x192 with 1 Axes>"}),
        content=(TextPart(text="[image 1: 288x192 png]\n[ok, 4.3 s]"), ImagePart(media_type="image/png", data=PLOT)),
        elapsed=4.3,
        changes=(
            ev.FileChange(path="history.csv", after=digest("history"), size=412),
            ev.FileChange(path="runs/model.pt", after=digest("model"), size=12_400_000, kept=False),
        ),
    )


def be_refused(story: Story) -> None:
    secret = call("c5", "bash", command="cat ../answers.csv")
    broken = ToolCall(call_id="c6", name="write_file", malformed='{"path": "train.py", "content": "import')
    story.reply("Let me compare with the answers.", secret, broken)
    ask = Decision(verdict="ask", reason="the path is outside the workspace", policy="ask_outside_workspace")
    ids: dict[str, Any] = {"call_id": "c5", "name": "bash"}
    no = Approval(approved=False, reason="nobody can be asked, and the path is outside the workspace", by="policy")
    story.add(
        ev.CallDecided(**ids, call=secret, source="%%bash\ncat ../answers.csv", decision=ask),
        ev.ApprovalAsked(**ids, decision=ask),
        ev.ApprovalAnswered(**ids, approval=no),
        ev.ResultAdded(**ids, status=Status.DENIED, content=text_content(f"BLOCKED: {no.reason}. Find another way.")),
    )
    problem = "The arguments of write_file are not a whole JSON object, so the call was not run."
    deny = Decision(verdict="deny", reason=problem, policy="deny_invalid_calls")
    ids = {"call_id": "c6", "name": "write_file"}
    story.add(
        ev.CallDecided(**ids, call=broken, source="", decision=deny),
        ev.ResultAdded(**ids, status=Status.ERROR, content=text_content(problem)),
    )


def finish_too_early(story: Story) -> None:
    early = call("c7", "finish", summary="Accuracy is *96.8 %*.")
    story.reply("", early)
    output = "predictions.csv is missing\n"
    refusal = f"The finish is refused, the work goes on.\n\nThe check `python check.py` failed (exit 1):\n{output}"
    story.add(
        ev.CheckFinished(command="python check.py", passed=False, exit_code=1, output=output, elapsed=0.3),
        ev.ResultAdded(call_id="c7", name="finish", status=Status.ERROR, content=text_content(refusal)),
        ev.FinishRejected(reason=refusal),
    )


def finish_well(story: Story) -> None:
    content = 'model.predict(test).to_csv("predictions.csv")'
    write = call("c8", "write_file", path="predict.py", content=content + "\n")
    finish = call(
        "c9",
        "finish",
        summary="# Summary\n\nThe network reaches **96.8 %** on the validation part.\n\n"
        "| file | what it is |\n|---|---|\n| `predictions.csv` | one label a row |\n",
    )
    story.reply("The predictions are missing. I write them with a script.", write)
    story.ran(
        write,
        f"%%writefile predict.py\n{content}",
        stream("stdout", "Writing predict.py (1 line)\n"),
        changes=(ev.FileChange(path="predict.py", after=digest("predict"), size=45),),
    )
    story.reply("", finish)
    usage = Usage(input_tokens=18_900, output_tokens=480, cached_input_tokens=6_000, cost_usd=0.0123)
    story.add(
        ev.CheckFinished(
            command="python check.py", passed=True, exit_code=0, output="360 of 360 rows\n```ok```\n", elapsed=0.4
        ),
        ev.ResultAdded(call_id="c9", name="finish", status=Status.OK, content=text_content("The finish is accepted.")),
        ev.FinishAccepted(summary=str(finish.arguments["summary"]), checks=1),
        ev.SessionEnded(reason="finished", turns=story.turn, usage=usage, elapsed=74),
    )


def tell() -> list[ev.Event]:
    """The events of the whole story."""
    story = Story()
    for chapter in (begin, look_and_stumble, train, be_refused, finish_too_early, finish_well):
        chapter(story)
    return story.events
