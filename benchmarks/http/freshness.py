"""How long an acknowledged write takes to be in an HTTP answer, as a process of its own.

    python -m benchmarks.http.freshness HOST:PORT TOPIC HTTP_PORT PER_SECOND SECONDS KEYS

Each probe is written with `Table.put`. When that returns, the write is acknowledged and the clock starts; it stops when
an answer over a kept-alive connection has the new value. Every other probe asks again and again, the ones between ask
once, with the position of the acknowledgement as `min_position`. Both ends are in this process, so it is one clock.
Another process writes PER_SECOND records to the same table all the while.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import quantiles

import lastword
from benchmarks.http.servers import ROWS
from benchmarks.input.paced_writer import Pace

_PROBES_PER_SECOND = 10
_LOOK_EVERY_SECONDS = 0.0005
_PATIENCE_SECONDS = 30
# The probes begin so long after the other writer, and end so long before it.
_LEAD_SECONDS = 1


class KeptAlive:
    """One connection, asked by hand: a library would take as long as the answer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = b"127.0.0.1:%d" % port

    def get(self, path: str) -> bytes:
        """The answer, head and body."""
        self._socket.sendall(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (path.encode(), self._host))
        told = b""
        while (end := told.find(b"\r\n\r\n")) < 0:
            told += self._more()
        length = int(told[:end].lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(told) < end + 4 + length:
            told += self._more()
        return told

    def _more(self) -> bytes:
        part = self._socket.recv(65_536)
        if not part:
            sys.exit("the server has closed the connection")
        return part

    def close(self) -> None:
        self._socket.close()


def freshness_ms(servers: str, topic: str, port: int, seconds: int) -> tuple[list[float], list[float]]:
    """Of each probe the time from its acknowledgement to its answer: asked for again and again, and asked for once."""
    looked_for: list[float] = []
    waited_for: list[float] = []
    asking = KeptAlive(port)
    with lastword.connect(servers) as cluster:
        table = cluster.table(topic)
        for number in _at_a_pace(seconds):
            key, token = f"probe-{number % 10}", f"probe {number} of {time.monotonic():.6f}"
            ack = table.put(key, {"token": token})
            acknowledged = time.monotonic()
            if number % 2:
                told = asking.get(f"{ROWS}{key}?min_position={ack.position}")
                waited_for.append((time.monotonic() - acknowledged) * 1000)
                if token.encode() not in told:
                    sys.exit(f"an answer with min_position={ack.position} is older than that")
            else:
                _look(asking, ROWS + key, token.encode())
                looked_for.append((time.monotonic() - acknowledged) * 1000)
    asking.close()
    return looked_for, waited_for


def _at_a_pace(seconds: int) -> Iterator[int]:
    """Numbers, each at a moment of its own within its turn, so that no timer of anyone's falls into step with them."""
    began = time.monotonic()
    for number in range(_PROBES_PER_SECOND * seconds):
        moment = began + (number + random.random()) / _PROBES_PER_SECOND  # noqa: S311  no secret
        time.sleep(max(0.0, moment - time.monotonic()))
        yield number


def _look(asking: KeptAlive, path: str, token: bytes) -> None:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while token not in asking.get(path):
        if time.monotonic() > give_up_at:
            sys.exit(f"a write was not in an answer within {_PATIENCE_SECONDS} s")
        time.sleep(_LOOK_EVERY_SECONDS)


def measured(servers: str, topic: str, port: int, pace: Pace) -> dict[str, float]:
    """While another process writes at the pace, and only then."""
    with subprocess.Popen(pace.writer(servers, topic, "background-"), stdout=subprocess.PIPE) as writer:
        try:
            time.sleep(_LEAD_SECONDS)
            looked_for, waited_for = freshness_ms(servers, topic, port, pace.seconds - 2 * _LEAD_SECONDS)
            writer.communicate(timeout=_PATIENCE_SECONDS)
        except BaseException:
            writer.kill()
            raise
    if writer.returncode:
        sys.exit("the other writer failed")
    looked, waited = (quantiles(each, n=100, method="inclusive") for each in (looked_for, waited_for))
    p50, p99 = 49, 98
    return {
        "p50": looked[p50],
        "p99": looked[p99],
        "with min_position, p50": waited[p50],
        "with min_position, p99": waited[p99],
    }


if __name__ == "__main__":
    _, servers, topic, port, per_second, seconds, keys = sys.argv
    pace = Pace(per_second=int(per_second), seconds=int(seconds) + 2 * _LEAD_SECONDS, keys=int(keys))
    print(json.dumps(measured(servers, topic, int(port), pace)))
