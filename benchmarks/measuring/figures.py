"""The result of a benchmark: figures (medians over rounds), ratios of two figures, and the targets they meet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any, Literal

_FORMATS = {"s": ".2f", "ms": ".1f", "µs": ".1f"}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One thing measured in every round."""

    what: str
    unit: Literal["records/s", "requests/s", "s", "ms", "µs", "MB", "% of a core"]
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.rounds)

    def text(self, value: float) -> str:
        return format(value, _FORMATS.get(self.unit, ",.0f"))

    def as_json(self) -> dict[str, Any]:
        spread = {"median": self.median, "lowest": min(self.rounds), "highest": max(self.rounds)}
        return {"what": self.what, "unit": self.unit, **spread, "rounds": list(self.rounds)}


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The median of `ours` divided by the median of `theirs`, with a target if there is one."""

    what: str
    ours: Figure
    theirs: Figure
    target: float | None = None
    bound: Literal["at least", "at most"] = "at least"

    @property
    def value(self) -> float:
        return self.ours.median / self.theirs.median

    @property
    def is_met(self) -> bool:
        if self.target is None:
            return True
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target

    @property
    def verdict(self) -> str:
        if self.target is None:
            return "none"
        return f"{self.bound} {self.target:g}: {'met' if self.is_met else 'MISSED'}"

    @property
    def spread(self) -> str:
        """The lowest and highest ratio of two runs of one round; of any two runs if one side has fewer rounds."""
        ours, theirs = self.ours.rounds, self.theirs.rounds
        same = zip(ours, theirs, strict=True) if len(ours) == len(theirs) else product(ours, theirs)
        pairs = [mine / other for mine, other in same]
        return f"{min(pairs):.2f} to {max(pairs):.2f}"

    def as_json(self) -> dict[str, Any]:
        target = None if self.target is None else {"bound": self.bound, "value": self.target, "met": self.is_met}
        return {"what": self.what, "ratio": self.value, "target": target}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A figure whose median has a target, in the unit of the figure."""

    figure: Figure
    target: float

    @property
    def is_met(self) -> bool:
        return self.figure.median <= self.target

    @property
    def verdict(self) -> str:
        return f"at most {self.target:g} {self.figure.unit}: {'met' if self.is_met else 'MISSED'}"

    def as_json(self) -> dict[str, Any]:
        target = {"bound": "at most", "value": self.target, "met": self.is_met}
        return {"what": self.figure.what, "unit": self.figure.unit, "median": self.figure.median, "target": target}


@dataclass(frozen=True, kw_only=True)
class Result:
    """Everything that one benchmark measured, and the text that says how."""

    name: str
    title: str
    how: str
    # The options that repeat this run, after `python -m benchmarks NAME`.
    options: str
    figures: tuple[Figure, ...]
    ratios: tuple[Ratio, ...]
    limits: tuple[Limit, ...] = ()
    # Alternatives that could not be measured on this machine, each with the reason.
    left_out: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return f"python -m benchmarks {self.name} {self.options}".rstrip()

    @property
    def is_met(self) -> bool:
        return all(ratio.is_met for ratio in self.ratios) and all(limit.is_met for limit in self.limits)

    @property
    def has_target(self) -> bool:
        return bool(self.limits) or any(ratio.target is not None for ratio in self.ratios)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "command": self.command,
            "met": self.is_met,
            "figures": [figure.as_json() for figure in self.figures],
            "ratios": [ratio.as_json() for ratio in self.ratios],
            "limits": [limit.as_json() for limit in self.limits],
            "left_out": list(self.left_out),
        }


def stricter(*ratios: Ratio) -> Ratio:
    """The lowest of several ratios that should be high: this one must meet the target."""
    return min(ratios, key=lambda ratio: ratio.value)
