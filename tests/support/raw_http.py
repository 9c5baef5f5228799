"""Requests byte by byte, as no library would send them, and their answers."""

from __future__ import annotations

import re
import socket
import time
from typing import NamedTuple

HOST = b"Host: localhost\r\n"
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


class RawAnswer(NamedTuple):
    raw: bytes
    # Whether the server ended the connection.
    ended: bool

    @property
    def statuses(self) -> list[int]:
        return [int(status) for status in _STATUS.findall(self.raw)]


def request(target: str | bytes, *headers: str, method: str = "GET", body: bytes = b"", version: str = "1.1") -> bytes:
    """The bytes of a request, with a Host and with these header lines."""
    path = target if isinstance(target, bytes) else target.encode()
    lines = "".join(f"{header}\r\n" for header in headers).encode("latin-1")
    return b"%b %b HTTP/%b\r\n%b%b\r\n%b" % (method.encode(), path, version.encode(), HOST, lines, body)


def put(target: str, *headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    return request(target, *headers, method="PUT", body=body, version=version)


def exchange(port: int, sent: bytes, *, quiet_s: float = 0.15, patience_s: float = 5.0) -> RawAnswer:
    """The answer, until the server ends the connection or sends nothing for a moment."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience_s) as connection:
        raw, give_up_at = b"", time.monotonic() + patience_s
        try:
            connection.sendall(sent)
            # The first answer may take long; the rest follows at once.
            while time.monotonic() < give_up_at:
                connection.settimeout(quiet_s if raw else patience_s)
                part = connection.recv(1 << 16)
                if not part:
                    return RawAnswer(raw, True)
                raw += part
        except TimeoutError:
            pass
        except OSError:
            # The server ended the connection before everything was sent.
            return RawAnswer(raw, True)
        return RawAnswer(raw, False)
