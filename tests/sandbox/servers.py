"""Servers on the loopback that a sandbox may or may not reach: plain HTTP, TLS, and one that echoes bytes."""

from __future__ import annotations

import asyncio
import http.server
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, and what was asked for, for tests to look at."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, dict[str, str]]]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._see()
        super().do_GET()

    def do_POST(self) -> None:
        self._see()
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _see(self) -> None:
        self.server.seen.append((self.command, self.path, dict(self.headers)))  # type: ignore[attr-defined]


class Site(http.server.ThreadingHTTPServer):
    """A server of files at ``port``; ``seen`` are the requests: method, path, headers."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.port = int(self.server_address[1])


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)


class Echo(socketserver.ThreadingTCPServer):
    """Sends back what comes; ``port`` is where."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Echo)
        self.port = int(self.server_address[1])


class Secured:
    """A certificate for here.example.org and 127.0.0.1, signed by itself, and a server's TLS with it."""

    def __init__(self, folder: Path) -> None:
        self.certificate, key = folder / "certificate.pem", folder / "key.pem"
        names = "subjectAltName=DNS:here.example.org,IP:127.0.0.1"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-subj", "/CN=here.example.org", "-addext", names, "-keyout", key, "-out", self.certificate]
        subprocess.run(command, check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    """Serve in a thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def ask(path: Path, request: bytes, *, end: bool = False) -> bytes:
    """What the proxy at ``path`` answers, until it closes; ``end`` says that nothing more will be sent."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(request)
        if end:
            writer.write_eof()
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def free_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
