"""What a setting is made of: the kind of its value, the range, the words for it, and where it becomes dangerous.

Kafka wants plain numbers. People write 7d and 64MiB, so a kind also takes those and gives Kafka its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from lastword.core.errors import BadInput

LONGEST = 2**63 - 1
LARGEST_INT = 2**31 - 1

_DURATIONS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Only the binary ones: 64MB is 64,000,000 to some and 67,108,864 to others, and Kafka's own defaults are binary.
_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS: dict[str, dict[str, int]] = {"ms": _DURATIONS, "bytes": _SIZES, "": {}}

_WHOLE = re.compile(r"[+-]?[0-9]+")
_WITH_UNIT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A whole number, perhaps of milliseconds or bytes."""

    least: int
    most: int
    unit: Literal["ms", "bytes", ""] = ""
    # Numbers that are not an amount, such as -1 for "no limit".
    stands_for: Mapping[int, str] = field(default_factory=dict)

    def plain(self, name: str, text: str) -> str:
        """The value as Kafka takes it; BadInput names the range if the text is no such value."""
        number = self._number(text.strip())
        if number is None or not self.least <= number <= self.most:
            raise BadInput(f"{name}={text}: it takes {self.range}{self._how_to_write_it()}")
        return str(number)

    def _number(self, text: str) -> int | None:
        if _WHOLE.fullmatch(text):
            return int(text)
        with_unit = _WITH_UNIT.fullmatch(text)
        factor = with_unit and _UNITS[self.unit].get(with_unit[2])
        if not with_unit or not factor:
            return None
        amount = Fraction(with_unit[1]) * factor
        return int(amount) if amount.denominator == 1 else None

    def _how_to_write_it(self) -> str:
        example = {"ms": "7d", "bytes": "64MiB", "": ""}[self.unit]
        return f"; write a number of {self.unit}, or one like {example} ({', '.join(_UNITS[self.unit])})" * bool(
            example
        )

    @property
    def range(self) -> str:
        unit = f" {self.unit}" * bool(self.unit)
        if self.most == LONGEST:
            return f"a whole number of {self.least}{unit} or more"
        return f"a whole number from {self.least} to {self.most}{unit}"

    def shown(self, value: str) -> str:
        """The value with its meaning, or with the same amount in a larger unit: `86400000 (1d)`."""
        number = int(value)
        meaning = self.stands_for.get(number) or _in_units(number, _UNITS[self.unit])
        return f"{value} ({meaning})" if meaning else value


@dataclass(frozen=True, kw_only=True)
class Real:
    """A number with a fraction."""

    least: float
    most: float
    stands_for: Mapping[float, str] = field(default_factory=dict)

    def plain(self, name: str, text: str) -> str:
        # Matched by hand, because Kafka and float() both take NaN, and NaN is in every range.
        if not _REAL.fullmatch(text.strip()) or not self.least <= float(text) <= self.most:
            raise BadInput(f"{name}={text}: it takes {self.range}")
        return text.strip()

    @property
    def range(self) -> str:
        if self.most > LONGEST:
            return f"a number of {self.least:g} or more"
        return f"a number from {self.least:g} to {self.most:g}"

    def shown(self, value: str) -> str:
        meaning = self.stands_for.get(float(value))
        return f"{value} ({meaning})" if meaning else value


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of a few words; of a list of words, the order does not matter."""

    words: tuple[str, ...]

    def plain(self, name: str, text: str) -> str:
        chosen = ",".join(sorted(word.strip() for word in text.split(",")))
        if chosen not in self.words:
            raise BadInput(f"{name}={text}: it takes {self.range}")
        return chosen

    @property
    def range(self) -> str:
        return "one of " + " | ".join(self.words)

    def shown(self, value: str) -> str:
        return value


@dataclass(frozen=True, kw_only=True)
class Danger:
    """Values that are allowed but do harm: `where` names them, `applies` decides for a plain value."""

    where: str
    applies: Callable[[str], bool]
    harm: str


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a topic or of a broker; the default is that of Kafka 4.3."""

    name: str
    kind: Whole | Real | Choice
    default: str
    meaning: str
    recommendation: str
    dangers: tuple[Danger, ...] = ()
    # For a broker's setting that is only the default of a topic's: the name of that one.
    for_one_topic: str = ""

    def warnings(self, value: str) -> list[str]:
        return [f"{self.name}={value}: {danger.harm}" for danger in self.dangers if danger.applies(value)]


def _in_units(number: int, units: Mapping[str, int]) -> str:
    """The number in the largest unit that divides it; empty if no larger unit does."""
    fitting = [(unit, size) for unit, size in units.items() if size > 1 and number and number % size == 0]
    if not fitting:
        return ""
    unit, size = max(fitting, key=lambda each: each[1])
    return f"{number // size}{unit}"
