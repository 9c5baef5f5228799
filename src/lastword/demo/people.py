"""The ten users of the profile scenario, and the settings of the topic they live in."""

from __future__ import annotations

from typing import TypedDict

# The topic in which `up` keeps them.
TABLE = "user-profiles"
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "10000",
    "delete.retention.ms": "100",
}
PARTITIONS = 3


class Profile(TypedDict):
    userId: str
    name: str
    email: str
    age: int
    version: int


def profile(number: int, name: str, age: int, version: int = 1) -> Profile:
    email = f"{name.split(maxsplit=1)[0].lower()}@example.com"
    return {"userId": f"user-{number}", "name": name, "email": email, "age": age, "version": version}


FIRST_FIVE = [
    profile(1, "Alice", 25),
    profile(2, "Bob", 30),
    profile(3, "Charlie", 35),
    profile(4, "Diana", 28),
    profile(5, "Eve", 32),
]
UPDATES = [
    profile(1, "Alice Smith", 26, version=2),
    profile(2, "Bob Jones", 31, version=2),
    profile(1, "Alice Smith", 27, version=3),
]
LAST_FIVE = [
    profile(6, "Frank", 29),
    profile(7, "Grace", 33),
    profile(8, "Heidi", 41),
    profile(9, "Ivan", 38),
    profile(10, "Judy", 27),
]
LIVE_UPDATE = profile(1, "Alice Johnson", 28, version=4)
EVERYONE = [*FIRST_FIVE, *UPDATES, *LAST_FIVE]
