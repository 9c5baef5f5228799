"""A slow reader of a whole table over HTTP."""

from __future__ import annotations

import http.client
import json
import re
import socket
from typing import Any
from urllib.request import urlopen


class SlowReader:
    """Sends its request at once and reads only on `rest`; its buffer is small. Close it."""

    def __init__(self, url: str, path: str = "/users", **headers: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        small.settimeout(60)
        small.connect((host, int(port)))
        self._connection = http.client.HTTPConnection(host, int(port))
        self._connection.sock = small
        spelt = {name.replace("_", "-"): text for name, text in headers.items()}
        self._connection.request("GET", path, headers=spelt)
        self.answer = self._connection.getresponse()

    def rest(self) -> bytes:
        """Everything that was not read yet; IncompleteRead if the connection was cut."""
        return self.answer.read()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> SlowReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_cut(reader: SlowReader) -> bool:
    """Whether an answer is incomplete for an HTTP client, and is no JSON."""
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
    """The sum of a metric over all labels; 0 if the metric is missing."""
    with urlopen(f"{url}/metrics") as answer:  # noqa: S310
        text = answer.read().decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


def value_of(number: int) -> dict[str, Any]:
    # Long enough that no buffer holds all rows.
    return {"number": number, "text": f"{number:05}" * 800}
