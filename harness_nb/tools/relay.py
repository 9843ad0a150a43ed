"""Carries connections out of a sandbox: from a port of its own loopback to the unix socket of the harness's proxy.

Started inside, before the kernel, with ``python -I -S``::

    relay.py PORT SOCKET

It understands nothing of what it carries and decides nothing: the proxy outside does. It writes a line once it listens.
Standard library only.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from contextlib import suppress

CHUNK = 65_536
MOST_CONNECTIONS = 128
BACKLOG = 128


def carry(source: socket.socket, target: socket.socket) -> None:
    """Copy until ``source`` ends, and tell ``target`` so."""
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def connect(client: socket.socket, path: str, free: threading.Semaphore) -> None:
    """Carry one connection in both directions until both have ended."""
    try:
        with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as proxy:
            proxy.connect(path)
            back = threading.Thread(target=carry, args=(proxy, client), daemon=True)
            back.start()
            carry(client, proxy)
            back.join()
    except OSError:  # the proxy is gone, or nobody is there any more
        pass
    finally:
        free.release()


def main() -> None:
    """Listen, say so, and serve for ever."""
    port, path = int(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    free = threading.Semaphore(MOST_CONNECTIONS)
    with socket.create_server(("127.0.0.1", port), backlog=BACKLOG) as server:
        sys.stdout.write("ready\n")
        sys.stdout.close()
        while True:
            free.acquire()
            try:
                client, _ = server.accept()
            except OSError:
                free.release()
                continue
            try:
                threading.Thread(target=connect, args=(client, path, free), daemon=True).start()
            except RuntimeError:  # no more threads
                client.close()
                free.release()


if __name__ == "__main__":
    main()
