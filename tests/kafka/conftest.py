"""Temporary: a cluster that somebody else has started, at LASTWORD_TEST_BOOTSTRAP."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator

import pytest

from lastword.core.errors import NotFound
from lastword.kafka.connection import Connection
from lastword.kafka.topics import delete_topic


@pytest.fixture(scope="session")
def connection() -> Connection:
    address = os.environ.get("LASTWORD_TEST_BOOTSTRAP")
    if not address:
        pytest.skip("LASTWORD_TEST_BOOTSTRAP names no cluster")
    return Connection(bootstrap_servers=address)


@pytest.fixture
def topic_name(connection: Connection) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    with contextlib.suppress(NotFound):
        delete_topic(connection, name)
