"""Temporary: a cluster given by LASTWORD_TEST_BOOTSTRAP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException

from lastword.kafka.connection import Connection


@pytest.fixture(scope="session")
def connection() -> Connection:
    return Connection(bootstrap_servers=os.environ["LASTWORD_TEST_BOOTSTRAP"])


@pytest.fixture
def topic_name(connection: Connection) -> Iterator[str]:
    name = f"test-{uuid4().hex[:12]}"
    yield name
    admin = connection.admin()
    with suppress(KafkaException):
        admin.delete_topics([name])[name].result()
