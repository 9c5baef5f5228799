"""The body of a request as it is put together from its parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from lastword.serve.http.answers import Refused
from lastword.serve.http.bodies import Bodies
from lastword.serve.http.limits import Limits


class Counted(bytes):
    """A part of a body that counts how often somebody looks how long it is."""

    looks = 0

    def __len__(self) -> int:
        Counted.looks += 1
        return super().__len__()


async def in_single_bytes(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield Counted(b"x")


async def received(bodies: Bodies, count: int) -> bytes:
    async with bodies.received(in_single_bytes(count), {}) as body:
        return body


@pytest.mark.parametrize("count", [100, 1000, 10_000])
def test_each_part_of_a_body_is_looked_at_once_however_many_there_are(count: int) -> None:
    Counted.looks = 0
    assert asyncio.run(received(Bodies(Limits()), count)) == b"x" * count
    assert Counted.looks == count


def test_a_body_in_single_bytes_is_bounded_like_any_other() -> None:
    bodies = Bodies(Limits(body_bytes=50, waiting_bytes=80))
    for _ in range(3):
        with pytest.raises(Refused, match="the body has more than 50 bytes"):
            asyncio.run(received(bodies, 51))
    # Nothing is left of those that were refused.
    assert asyncio.run(received(bodies, 50)) == b"x" * 50
