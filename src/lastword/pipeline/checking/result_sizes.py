"""Functions whose argument decides how large the result is: a field of a record could ask for more than memory holds.

A process that runs out of memory can't recover. So such an argument must have a bound that the file states.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lastword.spark.session.catalyst import children

# The most characters or elements that one expression may ask for.
_LARGEST = 1_000_000
# By the name of a node in Spark's tree: the child that says how large it is. A negative number asks for nothing.
_LENGTH = {"ArrayRepeat": 1, "FormatNumber": 1, "StringLPad": 1, "StringRPad": 1, "StringRepeat": 1, "StringSpace": 0}
# The same functions for bytes.
_LENGTH |= {"lpad": 1, "rpad": 1}
# The same, for functions where a negative number asks for as much as a positive one.
_PLACE = {"ArrayInsert": 1}
_NUMBER = f"write a number up to {_LARGEST:,} there"


def unbounded(node: Any) -> str | None:
    """How to bound a node of Spark's tree whose size depends on a record; None if it needs no bound."""
    kind, below = str(node.nodeName()), [*children(node)]
    if kind in _LENGTH:
        hint = None if _bound(below[_LENGTH[kind]]) <= _LARGEST else f"{_NUMBER}, or least(..., 1000)"
    elif kind in _PLACE:
        hint = None if _distance([below[_PLACE[kind]]]) <= _LARGEST else _NUMBER
    elif kind == "Sequence":
        hint = None if _distance(below) <= _LARGEST else f"write its ends and its step, at most {_LARGEST:,} elements"
    elif kind == "FormatString":
        hint = None if below[0].foldable() else "write its format as a text"
    else:
        hint = None
    name = kind if hint is None else str(node.prettyName())
    return None if hint is None else f"the size of the result of {name} depends on a field of the record: {hint}"


def constant_of(node: Any) -> Any:
    """The constant value of a node; None if the value depends on the record, or the node fails."""
    try:
        return node.eval(None) if node.foldable() else None
    except (PySparkException, Py4JError):
        return None


def _bound(length: Any) -> float:
    """The largest value of the expression; infinite if it depends on a record."""
    if length.foldable():
        value = constant_of(length)
        return float(value) if isinstance(value, int | float) else 0.0
    below = [_bound(child) for child in children(length)]
    kind = str(length.nodeName())
    if kind == "Cast":
        return below[0]
    return min(below) if kind == "Least" else float("inf")


def _distance(ends: Iterable[Any]) -> float:
    """The largest distance between two of these values, and from zero."""
    values = [0.0]
    for end in ends:
        if not end.foldable():
            return float("inf")
        values.append(_bound(end))
    return max(values) - min(values)
