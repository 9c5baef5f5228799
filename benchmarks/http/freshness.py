"""A process that measures how long an acknowledged write takes to be in an HTTP answer.

    python -m benchmarks.http.freshness HOST:PORT TOPIC HTTP_PORT PER_SECOND SECONDS KEYS

Each probe is written with `Table.put`. When `put` returns, the write is acknowledged and the clock starts. The clock
stops when an answer over a kept-alive connection has the new value. Every second probe asks once, with the position of
the acknowledgement as `min_position`; the others ask again and again. Both ends are in this process, so there is one
clock. Another process writes PER_SECOND records to the same table meanwhile.
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
# The probes start so long after the other writer, and end so long before it.
_LEAD_SECONDS = 1


class KeptAlive:
    """One connection, without a library: a library would take as long as the answer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = b"127.0.0.1:%d" % port

    def get(self, path: str) -> bytes:
        """The answer, head and body."""
        self._socket.sendall(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (path.encode(), self._host))
        answer = b""
        while (end := answer.find(b"\r\n\r\n")) < 0:
            answer += self._more()
        length = int(answer[:end].lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(answer) < end + 4 + length:
            answer += self._more()
        return answer

    def _more(self) -> bytes:
        part = self._socket.recv(65_536)
        if not part:
            sys.exit("the server closed the connection")
        return part

    def close(self) -> None:
        self._socket.close()


def freshness_ms(servers: str, topic: str, port: int, seconds: int) -> tuple[list[float], list[float]]:
    """The times from acknowledgement to answer: of the probes that ask repeatedly, and of those that ask once."""
    looked_for: list[float] = []
    waited_for: list[float] = []
    client = KeptAlive(port)
    with lastword.connect(servers) as cluster:
        table = cluster.table(topic)
        for number in _at_a_pace(seconds):
            key, token = f"probe-{number % 10}", f"probe {number} of {time.monotonic():.6f}"
            ack = table.put(key, {"token": token})
            acknowledged = time.monotonic()
            if number % 2:
                answer = client.get(f"{ROWS}{key}?min_position={ack.position}")
                waited_for.append((time.monotonic() - acknowledged) * 1000)
                if token.encode() not in answer:
                    sys.exit(f"an answer with min_position={ack.position} does not have the write")
            else:
                _look(client, ROWS + key, token.encode())
                looked_for.append((time.monotonic() - acknowledged) * 1000)
    client.close()
    return looked_for, waited_for


def _at_a_pace(seconds: int) -> Iterator[int]:
    """Numbers at a steady rate, each at a random moment of its turn, so that no timer runs in step with them."""
    began = time.monotonic()
    for number in range(_PROBES_PER_SECOND * seconds):
        moment = began + (number + random.random()) / _PROBES_PER_SECOND  # noqa: S311  no secret
        time.sleep(max(0.0, moment - time.monotonic()))
        yield number


def _look(client: KeptAlive, path: str, token: bytes) -> None:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while token not in client.get(path):
        if time.monotonic() > give_up_at:
            sys.exit(f"a write was not in an answer within {_PATIENCE_SECONDS} s")
        time.sleep(_LOOK_EVERY_SECONDS)


def measured(servers: str, topic: str, port: int, pace: Pace) -> dict[str, float]:
    """The percentiles, while another process writes at the pace."""
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
