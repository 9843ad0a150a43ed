"""Drawing into ONE cell of a notebook, from any thread, while it runs and later.

``Canvas`` turns a changing list of bundles into as few messages as possible; ``KernelPublisher`` sends them under the
cell's own request as parent, so that nothing lands in a cell that happens to run at the time. The run of a ``%%agent``
cell uses both. Messages follow the Jupyter messaging specification (display_data, update_display_data). This module
must not import IPython: it is given the kernel.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Bundle:
    """A MIME bundle with its metadata: one output of a cell."""

    data: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)


BLANK = Bundle({"text/plain": ""})
"""What is left of an output that is no more: outputs of a cell cannot be taken away one by one."""


class Block(Protocol):
    """One output of the cell that can be redrawn."""

    def update(self, bundle: Bundle) -> None:
        """Show ``bundle`` in the place of what was shown."""
        ...


class Publisher(Protocol):
    """Where blocks are drawn."""

    def block(self, bundle: Bundle) -> Block:
        """Add an output at the end of the cell."""
        ...


class KernelPublisher:
    """Sends display messages for the cell whose execute request is ``parent``; works after the cell has ended, too."""

    def __init__(self, kernel: Any, parent: Mapping[str, Any]) -> None:
        self._kernel = kernel
        self._parent = parent

    def block(self, bundle: Bundle) -> KernelBlock:
        """Add an output at the end of the cell."""
        made = KernelBlock(self, f"harness-nb-{uuid.uuid4().hex}")
        self.send("display_data", made.display_id, bundle)
        return made

    def send(self, message_type: str, display_id: str, bundle: Bundle) -> None:
        """Send one message; safe from any thread, for the socket hands it to the kernel's own I/O thread."""
        content = {
            "data": dict(bundle.data),
            "metadata": dict(bundle.metadata),
            "transient": {"display_id": display_id},
        }
        self._kernel.session.send(self._kernel.iopub_socket, message_type, content, parent=self._parent)


@dataclass(frozen=True, slots=True)
class KernelBlock:
    """A display of the notebook, by its display id."""

    publisher: KernelPublisher
    display_id: str

    def update(self, bundle: Bundle) -> None:
        """Show ``bundle`` in the place of what was shown."""
        self.publisher.send("update_display_data", self.display_id, bundle)


class Canvas:
    """A list of bundles kept on display: place by place, only what has changed is sent.

    Bundles may be added anywhere in the list, so that late output of an earlier call appears where it belongs.
    """

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._blocks: list[Block] = []
        self._shown: list[Bundle] = []

    def draw(self, bundles: Sequence[Bundle]) -> None:
        """Make the cell show ``bundles``, in order."""
        gone = len(self._shown) - len(bundles)
        for place, bundle in enumerate([*bundles, *[BLANK] * gone]):
            if place == len(self._blocks):
                self._blocks.append(self._publisher.block(bundle))
                self._shown.append(bundle)
            elif self._shown[place] is not bundle and self._shown[place] != bundle:
                self._blocks[place].update(bundle)
                self._shown[place] = bundle

    def give_up_blanks(self) -> None:
        """Show what is added later below whatever the front-end itself puts at the end of the cell now."""
        while self._shown and self._shown[-1] is BLANK:
            self._shown.pop()
            self._blocks.pop()
