"""Readers of a whole table over HTTP, who may take their time."""

from __future__ import annotations

import http.client
import json
import re
import socket
from typing import Any
from urllib.request import urlopen


class SlowReader:
    """Asks at once, and reads only when it is asked to; its own buffer is small. Close it."""

    def __init__(self, url: str, path: str = "/users", **headers: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        made.settimeout(60)
        made.connect((host, int(port)))
        self._connection = http.client.HTTPConnection(host, int(port))
        self._connection.sock = made
        spelt = {name.replace("_", "-"): text for name, text in headers.items()}
        self._connection.request("GET", path, headers=spelt)
        self.answer = self._connection.getresponse()

    def rest(self) -> bytes:
        """All that has not been read; IncompleteRead when the connection was cut."""
        return self.answer.read()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> SlowReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_cut(reader: SlowReader) -> bool:
    """Whether an answer ends before its end, for a client of HTTP and for one of JSON."""
    try:
        reader.rest()
    except http.client.IncompleteRead as cut:
        try:
            json.loads(cut.partial)
        except ValueError:
            return True
    except ConnectionError:
        return True
    return False


def metric(url: str, name: str) -> float:
    """The sum over all labels; 0 where there is none."""
    with urlopen(f"{url}/metrics") as answer:  # noqa: S310
        text = answer.read().decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


def value_of(number: int) -> dict[str, Any]:
    # Long enough that no buffer holds all rows.
    return {"number": number, "text": f"{number:05}" * 800}
