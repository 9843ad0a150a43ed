"""What went over a proxy, by host: counted as it goes, and taken by whoever makes the record."""

from __future__ import annotations

from dataclasses import dataclass

from harness_nb.ports import HostUse

MOST_HOSTS = 200
"""Different hosts that are told one by one; code that asks for more gets one line for the rest."""

OTHERS = "(others)"

Key = tuple[str, int, bool, str]


@dataclass(slots=True)
class _Count:
    connections: int = 0
    sent: int = 0
    received: int = 0


class Usage:
    """Counts since the last ``take``. Of one event loop."""

    def __init__(self) -> None:
        self._counts: dict[Key, _Count] = {}

    def refuse(self, host: str, port: int, reason: str) -> None:
        """A connection was asked for and not made."""
        self._count((host, port, False, reason)).connections += 1

    def fail(self, host: str, port: int, reason: str) -> None:
        """A connection was allowed and could not be made."""
        self._count((host, port, True, reason)).connections += 1

    def connect(self, host: str, port: int) -> None:
        """A connection was made."""
        self._count((host, port, True, "")).connections += 1

    def carry(self, host: str, port: int, *, sent: int = 0, received: int = 0) -> None:
        """Bytes went over a connection."""
        count = self._count((host, port, True, ""))
        count.sent += sent
        count.received += received

    def take(self) -> tuple[HostUse, ...]:
        """What has been counted since this was last asked, the first host first."""
        counts, self._counts = self._counts, {}
        return tuple(
            HostUse(host, port, allowed, reason, count.connections, count.sent, count.received)
            for (host, port, allowed, reason), count in counts.items()
        )

    def _count(self, key: Key) -> _Count:
        if key not in self._counts and len(self._counts) >= MOST_HOSTS:
            key = (OTHERS, 0, key[2], f"more than {MOST_HOSTS} hosts")
        return self._counts.setdefault(key, _Count())
