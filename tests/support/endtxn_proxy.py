"""A proxy before a cluster of one broker: it holds an EndTxn request back and delivers it late, as networks may.

The proxy reads frames: the length, the kind of a request, its correlation id. In answers with the broker's address it
puts its own port, so that every connection of a client goes through the proxy.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lastword.kafka.client.connection import Connection
from support.waiting import eventually

PRODUCE, METADATA, FIND_COORDINATOR, INIT_PRODUCER_ID, END_TXN = 0, 3, 10, 22, 26


class EndTxnProxy:
    """Runs in a `with` block; `connection` leads to the cluster through the proxy."""

    def __init__(self, cluster: Connection) -> None:
        self._host, _, port = cluster.bootstrap_servers.rpartition(":")
        self._broker = (self._host, int(port))
        self._listener = socket.create_server((self._host, 0))
        self._port: int = self._listener.getsockname()[1]
        self.connection = Connection(bootstrap_servers=f"{self._host}:{self._port}")
        self._sockets = [self._listener]
        self._is_holding = False
        self._held: list[bytes] = []
        # How many requests of each kind came, and how many were answered.
        self.asked: Counter[int] = Counter()
        self.answered: Counter[int] = Counter()

    def __enter__(self) -> EndTxnProxy:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            _end(each)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Refuses new connections until the end of the block."""
        _end(self._listener)
        yield
        self._listener = socket.create_server((self._host, self._port))
        self._sockets.append(self._listener)
        self.__enter__()

    def hold_next_end(self) -> None:
        """Holds the next EndTxn back and cuts its connection: the client sends the request again."""
        self._held.clear()
        self._is_holding = True

    def deliver_held_end(self) -> int:
        """Delivers the EndTxn that was held back, and gives the broker's error code."""
        [request] = self._held
        with socket.create_connection(self._broker, timeout=30) as late:
            late.sendall(request)
            answer = next(_frames(late))
        # After the length come the correlation id and the throttle time, four bytes each.
        return int(struct.unpack_from(">h", answer, 12)[0])

    def wait_for_records_after(self, produced: int) -> None:
        """Waits until the broker has answered more than `produced` Produce requests."""
        eventually(lambda: self.answered[PRODUCE] > produced)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                broker = socket.create_connection(self._broker)
                self._sockets += [client, broker]
                kinds: dict[int, int] = {}  # by correlation id
                for passing in (self._pass_requests, self._pass_answers):
                    threading.Thread(target=passing, args=(client, broker, kinds), daemon=True).start()

    def _pass_requests(self, client: socket.socket, broker: socket.socket, kinds: dict[int, int]) -> None:
        with suppress(OSError):
            for request in _frames(client):
                kind, _, correlation = struct.unpack_from(">hhi", request, 4)
                self.asked[kind] += 1
                if kind == END_TXN and self._is_holding:
                    self._is_holding = False
                    self._held.append(request)
                    break
                kinds[correlation] = kind
                broker.sendall(request)
        _end(client)
        _end(broker)

    def _pass_answers(self, client: socket.socket, broker: socket.socket, kinds: dict[int, int]) -> None:
        theirs, ours = (self._host.encode() + struct.pack(">i", port) for port in (self._broker[1], self._port))
        with suppress(OSError):
            for answer in _frames(broker):
                kind = kinds.pop(struct.unpack_from(">i", answer, 4)[0])
                has_address = kind in (METADATA, FIND_COORDINATOR)
                client.sendall(answer.replace(theirs, ours) if has_address else answer)
                self.answered[kind] += 1
        _end(client)
        _end(broker)


def _frames(end: socket.socket) -> Iterator[bytes]:
    """Whole frames with their lengths, until the connection ends."""
    with end.makefile("rb") as stream:
        while len(length := stream.read(4)) == 4:
            yield length + stream.read(int.from_bytes(length))


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
