"""Requests byte by byte, as no library would send them, and whatever comes back."""

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
    """A request as it stands on the wire, with a Host; the headers as they are given."""
    path = target if isinstance(target, bytes) else target.encode()
    told = "".join(f"{header}\r\n" for header in headers).encode("latin-1")
    return b"%b %b HTTP/%b\r\n%b%b\r\n%b" % (method.encode(), path, version.encode(), HOST, told, body)


def put(target: str, *headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    return request(target, *headers, method="PUT", body=body, version=version)


def exchange(port: int, sent: bytes, *, quiet_s: float = 0.15, patience_s: float = 5.0) -> RawAnswer:
    """What comes back, until the server ends the connection or says nothing more for a moment."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience_s) as connection:
        back, give_up_at = b"", time.monotonic() + patience_s
        try:
            connection.sendall(sent)
            # The first answer may take its time, what follows it comes at once.
            while time.monotonic() < give_up_at:
                connection.settimeout(quiet_s if back else patience_s)
                part = connection.recv(1 << 16)
                if not part:
                    return RawAnswer(back, True)
                back += part
        except TimeoutError:
            pass
        except OSError:
            # It had enough before all was sent.
            return RawAnswer(back, True)
        return RawAnswer(back, False)
