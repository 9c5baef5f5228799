"""A reader of change streams over a socket, as strict about the format as a browser."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any, NamedTuple


class Event(NamedTuple):
    id: str
    name: str
    content: Any


class ChangeReader:
    """One change stream; close it. A new reader can resume at `last_id`."""

    def __init__(self, url: str, path: str, **headers: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        lines = "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\n{lines}\r\n".encode())
        self._raw = b""
        self._text = b""
        self.last_id = ""
        self.comments = 0
        head = self._until(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in rest)}

    @property
    def body(self) -> Any:
        """The JSON of an answer that is not a stream."""
        size = int(self.headers["content-length"])
        while len(self._raw) < size:
            self._raw += self.socket.recv(65536)
        return json.loads(self._raw)

    def events(self, timeout_s: float = 10.0) -> Iterator[Event]:
        """Events until the stream ends; TimeoutError if none comes in time."""
        give_up_at = time.monotonic() + timeout_s
        while True:
            while b"\n\n" not in self._text:
                chunk = self._chunk(give_up_at)
                if not chunk:
                    return
                self._text += chunk
            block, _, self._text = self._text.partition(b"\n\n")
            event = self._event(block.decode())
            if event is not None:
                yield event
                give_up_at = time.monotonic() + timeout_s

    def take(self, count: int, timeout_s: float = 60.0) -> list[Event]:
        events = self.events(timeout_s)
        return [next(events) for _ in range(count)]

    def close(self) -> None:
        self.socket.close()

    def _event(self, block: str) -> Event | None:
        name, content = "message", ""
        for line in block.split("\n"):
            field, _, text = line.partition(": ")
            match field:
                case "id":
                    self.last_id = text
                case "event":
                    name = text
                case "data":
                    content = text
                case "":
                    self.comments += 1
                case "retry":
                    pass
                case _:
                    raise AssertionError(f"no such field: {line!r}")
        return Event(self.last_id, name, json.loads(content)) if content else None

    def _chunk(self, give_up_at: float) -> bytes:
        """The next chunk of the body; empty at its end."""
        self.socket.settimeout(max(0.001, give_up_at - time.monotonic()))
        size = int(self._until(b"\r\n"), 16)
        while len(self._raw) < size + 2:
            self._raw += self._received()
        chunk, self._raw = self._raw[:size], self._raw[size + 2 :]
        return chunk

    def _until(self, end: bytes) -> bytes:
        while end not in self._raw:
            self._raw += self._received()
        before, _, self._raw = self._raw.partition(end)
        return before

    def _received(self) -> bytes:
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionResetError("the stream broke off")
        return part
