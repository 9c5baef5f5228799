"""Calls of every function of Spark, with fields of a record in place of the constants in its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyspark.sql import SparkSession

FIELDS = """id STRING NOT NULL, txt STRING, n INT, d DOUBLE, yes BOOLEAN, bin BINARY, arr ARRAY<INT>,
counts MAP<STRING, INT>, day DATE, at TIMESTAMP"""
# A record without odd values.
GOOD = {
    "txt": "abc",
    "n": 2,
    "d": 1.5,
    "yes": True,
    "bin": "YWJj",
    "arr": [1, 2],
    "counts": {"a": 1},
    "day": "2026-01-02",
    "at": "2026-01-02T03:04:05Z",
}
TEXTS = ("", "50%ZZ off", "[", "(", "<a", '{"a":', "2016-02-31", "9" * 40, "%1$9999s", "\u0000", "utf-7", "$[", "-1")
NUMBERS = (0, -1, 2**31 - 1, -(2**31), 10**9, 65)
# Functions that make maps are not tried: a failing call would end a task.
MAKES_MAPS = re.compile(
    r"\b(map|map_concat|map_from_arrays|map_from_entries|str_to_map|transform_keys)\s*\(", re.IGNORECASE
)
_EXAMPLE = re.compile(r"^\s*> SELECT\s+(.*?);\s*$", re.MULTILINE | re.DOTALL)
# Matches an example over several records.
_IS_QUERY = re.compile(r"\bFROM\b.*(\bVALUES\b|\()", re.IGNORECASE)
_CONSTANT = re.compile(
    r"""(?P<day>\bdate\s*'[^']*')|(?P<at>\btimestamp\w*\s*'[^']*')|(?P<bin>\bx'[^']*')|(?P<interval>\binterval\s+\S+\s+\w+)"""
    r"""|(?P<txt>r?'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<d>(?<![\w.])-?(?:\d+\.\d*|\.\d+)(?:E-?\d+)?[DF]?\b)"""
    r"""|(?P<n>(?<![\w.])-?\d+L?\b)|(?P<yes>\b(?:true|false)\b)""",
    re.IGNORECASE,
)
# Groups of functions that take or give several records.
_OF_MANY = ("agg_funcs", "window_funcs", "generator_funcs", "table_funcs")
# For functions whose examples are about several records.
_PLAIN = ("()", "(bin)", "(bin, bin)", "(bin, n)", "(bin, d)", "(txt)", "(n)", "(d)", "(txt, txt)", "(arr)", "(counts)")


def hostile_records() -> Iterator[dict[str, object]]:
    """Records with an odd value in every field, all kinds in turn."""
    for number in range(max(len(TEXTS), 2 * len(NUMBERS))):
        odd = number % 2 == 0
        yield {
            "txt": TEXTS[number % len(TEXTS)],
            "n": NUMBERS[number % len(NUMBERS)],
            "d": (0.0, -1.5, 1e308, -1e-308)[number % 4],
            "yes": odd,
            "bin": ("", "/wA=", "AgEDAwAA", "YWJj")[number % 4],
            "arr": ([], [0, None, 2**31 - 1], None)[number % 3],
            "counts": ({}, {"": None})[number % 2],
            "day": "0001-01-01" if odd else "9999-12-31",
            "at": "0001-01-01T00:00:00Z" if odd else "9999-12-31T23:59:59Z",
        }


def calls_of_all(spark: SparkSession, *, every: int = 1) -> dict[str, list[str]]:
    """Function -> calls made from its examples: all constants replaced, then one at a time."""
    state = spark._jsparkSession.sessionState()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier  # type: ignore[union-attr]
    names = [str(row[0]) for row in spark.sql("SHOW FUNCTIONS").collect()][::every]
    infos = {name: state.catalog().lookupFunctionInfo(identifier(name)) for name in names}
    return {
        name: _calls(name, str(info.getExamples())) for name, info in infos.items() if info.getGroup() not in _OF_MANY
    }


def _calls(name: str, examples: str) -> list[str]:
    texts = [" ".join(text.split()) for text in _EXAMPLE.findall(examples)]
    calls = [call for text in texts if not _IS_QUERY.search(text) for call in _replaced(text)]
    if name.isidentifier():
        calls += [f"{name}{arguments}" for arguments in _PLAIN]
    else:
        calls += [f"n {name} d", f"txt {name} txt"]
    return [*dict.fromkeys(calls)]


def _replaced(example: str) -> Iterator[str]:
    constants = [match for match in _CONSTANT.finditer(example) if match.lastgroup != "interval"]
    for chosen in ([*range(len(constants))], *([at] for at in range(len(constants)))):
        text, end = "", 0
        for at in chosen:
            text += f"{example[end : constants[at].start()]} {constants[at].lastgroup} "
            end = constants[at].end()
        yield text + example[end:]
