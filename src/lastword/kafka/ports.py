"""Ports on loopback: whether one is free, and free ones to take."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from lastword.core.errors import BrokerFailed


def check_port(port: int) -> None:
    if not is_free(port):
        raise BrokerFailed(
            f"port {port} is taken by another process: choose another with --port, or --port 0 for a free one"
        )


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Kafka does it: a port in TIME_WAIT is free for a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class PortPicker:
    """Free ports, each given once: they stay bound until all are chosen."""

    def __init__(self) -> None:
        self._held = ExitStack()

    def free(self) -> int:
        held = self._held.enter_context(socket.socket())
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port

    def __enter__(self) -> PortPicker:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
