"""Writes generated users to their topic, which is created if it is missing, and never emptied."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from lastword.core.errors import BadInput
from lastword.core.position import Position
from lastword.core.row_json import Write
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.loading import LoadStopped, load
from lastword.kafka.client.reading import log_bounds, read_log
from lastword.kafka.topics.topic_changes import create_if_missing
from lastword.teams.users.fraud_topics import AN_HOUR, PARTITIONS
from lastword.teams.users.generated_users import GeneratedUser, number_of, users
from lastword.teams.users.pace import steady, unpaced

TOPIC = "new_users"
_PATIENCE_S = 30.0
_TAIL = 100
_FIRST_USERS = 5_000


@dataclass(frozen=True, kw_only=True)
class UsersWritten:
    """How many users were written, the number of the first, and the time it took."""

    users: int
    first: int
    seconds: float


def write_users(
    connection: Connection,
    *,
    topic: str = TOPIC,
    seed: int = 0,
    count: int | None = None,
    per_second: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] | None = None,
) -> UsersWritten:
    """Writes `count` users, or until `stopped`, after the users of the topic; all are acknowledged on return.

    Without `per_second` as fast as possible.
    """
    if per_second == 0:
        raise BadInput("a rate of 0 users a second writes nothing: give at least 1, or no rate for the highest speed")
    create_if_missing(connection, topic, partitions=PARTITIONS, settings=AN_HOUR)
    first = next_number(connection, topic)
    portions = unpaced(stopped) if per_second is None else steady(per_second, stopped)
    chosen = islice(users(seed, first), count)
    how = {} if per_second is None else {"linger_ms": 5, "look_every": max(1, per_second // 100)}
    began = time.monotonic()
    try:
        written = load(connection, topic, _writes(chosen, portions), patience_s=_PATIENCE_S, progress=progress, **how)
    except LoadStopped as early:
        progress_line = f"{early.acknowledged} users were written to {topic}: the next start continues after them"
        raise LoadStopped(early.cause, progress_line, early.acknowledged) from None
    return UsersWritten(users=written, first=first, seconds=time.monotonic() - began)


def ensure_first_users(connection: Connection) -> None:
    """Writes some thousands of users to an empty topic, so that there is something to see at once."""
    _, end = log_bounds(connection, TOPIC)
    if sum(end.values()) == 0:
        write_users(connection, count=_FIRST_USERS)


def next_number(connection: Connection, topic: str) -> int:
    """The number after the newest user of the topic, so that a new start repeats nobody; 0 for a new topic."""
    start, end = log_bounds(connection, topic)
    tails = Position({partition: max(start[partition], end[partition] - _TAIL) for partition in end})
    keys = (record.key for batch in read_log(connection, topic, start=tails, stop=end) for record in batch)
    numbers = [number_of(key.decode(errors="replace")) for key in keys if key is not None]
    # If the newest users have expired, the offsets still show how many there were.
    return max([sum(end.values()), *(number + 1 for number in numbers if number is not None)])


def _writes(chosen: Iterator[GeneratedUser], portions: Iterable[int]) -> Iterator[Write]:
    encode = msgspec.json.Encoder().encode
    for size in portions:
        portion = list(islice(chosen, size))
        if not portion:
            return
        for user in portion:
            yield Write(user.email.encode(), encode(user))
