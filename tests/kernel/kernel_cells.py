"""Running one cell and looking at what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from harness_nb.ports import ExecuteReply, Kernel, Output


@dataclass(frozen=True)
class Ran:
    """What came of one cell."""

    outputs: tuple[Output, ...]
    reply: ExecuteReply

    def text(self, name: str = "stdout") -> str:
        return "".join(o.content["text"] for o in self.outputs if o.kind == "stream" and o.content["name"] == name)

    @property
    def kinds(self) -> list[str]:
        return [o.content["name"] if o.kind == "stream" else o.kind for o in self.outputs]

    @property
    def result(self) -> str | None:
        return next((o.content["data"]["text/plain"] for o in self.outputs if o.kind == "execute_result"), None)


Run = Callable[..., Awaitable[Ran]]


async def run_cell(kernel: Kernel, source: str, timeout: float | None = 60) -> Ran:
    items = [item async for item in kernel.execute(source, timeout)]
    *outputs, reply = items
    assert isinstance(reply, ExecuteReply)
    assert all(isinstance(output, Output) for output in outputs)
    return Ran(tuple(output for output in outputs if isinstance(output, Output)), reply)
