"""Errors of Spark as one line: what failed, where, and the error class; no stack trace and no plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import convert_exception
from pyspark.logger import PySparkLogger

from lastword.core import errors
from lastword.core.errors import BadInput, LastwordError

# SQLSTATE classes that blame the query or its data: data, cardinality, constraints, syntax, raise_error.
_OF_THE_QUERY = ("21", "22", "23", "42", "0A", "P0")
# A LastwordError that a worker raised arrives as the end of the worker's traceback.
_RAISED_IN_A_WORKER = re.compile(r"^lastword\.core\.errors\.(\w+): (.+)$", re.MULTILINE)
# Spark counts the columns of a plan's place from 0, and those of a running expression from 1.
_PLACE = re.compile(r"line (?P<line>\d+),? (?:pos (?P<from_0>\d+)|position (?P<from_1>\d+))")
_LONGEST = 300


@contextmanager
def one_line_failures(what: str) -> Iterator[None]:
    """Errors of Spark in the block become BadInput for a mistake in the query, else LastwordError."""
    # PySpark logs each of its errors as a page of JSON on standard error, before it raises it.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    try:
        yield
    except (PySparkException, Py4JError) as failure:
        raise one_line(failure, what) from None


def one_line(failure: PySparkException | Py4JError, what: str) -> LastwordError:
    """The error in one line, starting with `what` failed."""
    text = str(failure).strip()
    ours = _RAISED_IN_A_WORKER.search(text)
    if ours:
        kind = getattr(errors, ours[1], LastwordError)
        return kind(ours[2]) if kind.__init__ is LastwordError.__init__ else LastwordError(ours[2])
    if isinstance(failure, Py4JJavaError):
        return _of_causes(failure.java_exception, what)
    state = failure.getSqlState() if isinstance(failure, PySparkException) else None
    if not isinstance(failure, PySparkException) or state is None:
        return LastwordError(f"{what}: {_shortened(text) or type(failure).__name__}")
    place = place_of(failure)
    where = f", line {place[0]}, column {place[1]}" if place else ""
    line = f"{what}{where}: {reason_of(failure)}"
    return BadInput(line) if is_of_the_query(failure) else LastwordError(line)


def is_of_the_query(failure: PySparkException) -> bool:
    """Whether Spark blames the query or its data."""
    return (failure.getSqlState() or "").startswith(_OF_THE_QUERY)


def reason_of(failure: PySparkException) -> str:
    """Spark's message with the error class, without the place in the query."""
    condition, text = failure.getCondition(), str(failure).strip()
    message = text.removeprefix(f"[{condition}]").partition(f"SQLSTATE: {failure.getSqlState()}")[0]
    return f"{_shortened(message)} [{condition}]" if condition else _shortened(message)


def place_of(failure: PySparkException) -> tuple[int, int] | None:
    """The line and the column of the SQL that Spark names, both from 1; None when it names none."""
    place = _PLACE.search(str(failure).partition(f"SQLSTATE: {failure.getSqlState()}")[2])
    if place is None:
        return None
    return int(place["line"]), int(place["from_1"]) if place["from_1"] else int(place["from_0"]) + 1


def _of_causes(thrown: Any, what: str) -> LastwordError:
    """The error behind those that Spark wrapped around it: the first with an SQLSTATE, else the innermost."""
    while True:
        converted = convert_exception(thrown)
        if converted.getSqlState() is not None:
            return one_line(converted, what)
        if thrown.getCause() is None:
            message = str(thrown.getMessage() or thrown.toString())
            return LastwordError(f"{what}: {_shortened(message)}")
        thrown = thrown.getCause()


def _shortened(text: str) -> str:
    """On one line, cut after a sentence if it is too long."""
    whole = " ".join(text.split())
    if len(whole) <= _LONGEST:
        return whole
    end = whole.rfind(". ", 0, _LONGEST)
    return whole[: end + 1] if end > 0 else whole[: _LONGEST - 1] + "…"
