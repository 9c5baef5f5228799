"""The rows that the benchmarks write: user profiles of about 190 bytes, each under a key of its own."""

from __future__ import annotations

from pathlib import Path

_NAMES = ("Alice Smith", "Bob Jones", "Charlie Brown", "Diana Prince", "Eve Adams", "Frank Moore", "Grace Hopper")
_CITIES = ("Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh")


def write_rows(lines: Path, pairs: Path, count: int) -> None:
    """The same rows twice: in `lines` as the JSON lines that `load` reads, in `pairs` as `key TAB value`."""
    with lines.open("w", encoding="ascii") as as_json, pairs.open("w", encoding="ascii") as as_pairs:
        for number in range(count):
            key, value = f"user-{number}", _profile(number)
            as_json.write(f'{{"key":"{key}","value":{value}}}\n')
            as_pairs.write(f"{key}\t{value}\n")


def _profile(number: int) -> str:
    name, city = _NAMES[number % len(_NAMES)], _CITIES[number % len(_CITIES)]
    return (
        f'{{"userId":"user-{number}","name":"{name}","email":"user-{number}@example.com","age":{18 + number % 60},'
        f'"city":"{city}","score":{number * 7919 % 100_003 / 100},"active":{"true" if number % 3 else "false"},'
        f'"version":{1 + number % 4},"plan":"free"}}'
    )
