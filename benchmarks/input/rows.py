"""The rows that the benchmarks write: user profiles of about 190 bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from lastword.core.row_json import Write

_NAMES = ("Alice Smith", "Bob Jones", "Charlie Brown", "Diana Prince", "Eve Adams", "Frank Moore", "Grace Hopper")
_CITIES = ("Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh")
_RECORDS_PER_TOMBSTONE = 1000


def write_rows(lines: Path, pairs: Path, count: int) -> None:
    """Writes the same rows twice: to `lines` as JSON lines for `load`, to `pairs` as `key TAB value`."""
    with lines.open("w", encoding="ascii") as as_json, pairs.open("w", encoding="ascii") as as_pairs:
        for number in range(count):
            key, value = f"user-{number}", profile(number, number)
            as_json.write(f'{{"key":"{key}","value":{value}}}\n')
            as_pairs.write(f"{key}\t{value}\n")


def updates(records: int, live: bytearray) -> Iterator[Write]:
    """Random updates of `len(live)` keys, with a few tombstones; at the end `live` marks the keys that have a row."""
    chance, keys = random.Random(8), len(live)  # noqa: S311  no secret: the same records in every run
    for number in range(records):
        key = int(chance.random() * keys)
        live[key] = number % _RECORDS_PER_TOMBSTONE != 7
        yield Write(b"user-%d" % key, profile(key, number).encode() if live[key] else None)


def distinct(records: int) -> Iterator[Write]:
    """Rows with distinct keys."""
    for number in range(records):
        yield Write(b"user-%d" % number, profile(number, number).encode())


def profile(key: int, state: int) -> str:
    """The value of a row, as JSON; its key is user-KEY."""
    name, city = _NAMES[key % len(_NAMES)], _CITIES[state % len(_CITIES)]
    return (
        f'{{"userId":"user-{key}","name":"{name}","email":"user-{key}@example.com","age":{18 + state % 60},'
        f'"city":"{city}","score":{state * 7919 % 100_003 / 100},"active":{"true" if state % 3 else "false"},'
        f'"version":{1 + state % 4},"plan":"free"}}'
    )
