"""Mistakes in the SQL of a pipeline: Spark analyses each expression over an empty frame, and no job runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from lastword.core.nearest import did_you_mean
from lastword.pipeline.checking.result_sizes import constant_of, unbounded
from lastword.pipeline.checking.source_fields import RESERVED, SourceFields
from lastword.pipeline.plan.mistakes import Problem
from lastword.spark.reading.json_text import is_json_kind
from lastword.spark.session.catalyst import children, items, nodes_of
from lastword.spark.session.failures import one_line, place_of, reason_of
from lastword.spark.session.pyspark_private import analysed_plan, is_java_instance, jvm_of, sql_parser


@dataclass(frozen=True, kw_only=True)
class Role:
    """The role of an expression: the names it may use beside the source's fields, and the types it may have."""

    knows: tuple[StructField, ...] = ()
    # Empty: any type that JSON has.
    takes: tuple[type[DataType], ...] = ()
    wants: str = "a field of the value is anything that JSON has: cast(... AS STRING)"


_RULE = StructField("rule", StringType(), nullable=False)
_MATCHED = StructField("matched", BooleanType(), nullable=False)
WHEN = Role(takes=(BooleanType,), wants="a condition is a BOOLEAN: compare it with something")
KEY = Role(knows=(_RULE,), takes=(StringType, BinaryType), wants="a key is a STRING or BINARY: cast(... AS STRING)")
VALUE = Role(knows=(_RULE,))
COUNTER = Role(
    knows=(_MATCHED,),
    takes=(ByteType, ShortType, IntegerType, LongType),
    wants="a counter adds up whole numbers: cast(... AS BIGINT)",
)

_ALONE = "an expression sees one record at a time"
_AGGREGATE = f"an aggregate over several records: {_ALONE} (and counters are added up without it)"
_WINDOW = f"a window over other records: {_ALONE}"
_GENERATOR = f"explode and similar functions make several rows of one: {_ALONE}, and has one answer"
_SUBQUERY = f"a subquery reads other records: {_ALONE}"
_STAR = "* means all fields: name the fields that you need"
_ALIAS = "AS names the expression, which already has a name in the file: remove the AS"
_CHANGING = (
    "its result changes from call to call (like rand, uuid, now), but a record that is read again after a crash must "
    "give the same result: use the fields of the record"
)
_RAISES = (
    "raise_error and assert_true stop a query, and a pipeline must not stop: write a rule that matches the records "
    "which someone should see"
)
# By the start of a name: of a node in a parsed expression, of a node in an analysed plan, of an error of Spark.
_FORMS = {
    "UnresolvedStar": _STAR,
    "ScalarSubquery": _SUBQUERY,
    "Exists": _SUBQUERY,
    "ListQuery": _SUBQUERY,
    "WindowExpression": _WINDOW,
    "UnresolvedWindowExpression": _WINDOW,
}
_PLANS = {"Aggregate": _AGGREGATE, "Window": _WINDOW, "Generate": _GENERATOR}
_COMPLAINTS = {
    "MISSING_GROUP_BY": _AGGREGATE,
    "NESTED_AGGREGATE_FUNCTION": _AGGREGATE,
    "UNSUPPORTED_GENERATOR": _GENERATOR,
    "UDTF_ALIAS_NUMBER_MISMATCH": _GENERATOR,
    "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE": _WINDOW,
}
_WORD = re.compile(r"\w+")
_REPLACED = "org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable"
# Texts that Spark turns into a date or time of now.
_TIME_WORDS = ("now", "today", "yesterday", "tomorrow")
# One of these words after the name of a type: the parser makes a time of it.
_TIME_LITERAL = re.compile(rf"\b(?:date|timestamp(?:_ntz|_ltz)?)\s*'\s*(?:{'|'.join(_TIME_WORDS)})\b", re.IGNORECASE)
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")
# The nodes whose second child is a regular expression.
_PATTERN_SECOND = {"RLike", "RegExpReplace", "RegExpExtract", "RegExpExtractAll", "RegExpInStr", "StringSplit"}


class Expressions:
    """The expressions over one source; each is analysed once, however often it is used."""

    def __init__(self, spark: SparkSession, source: SourceFields) -> None:
        self._spark = spark
        self._source = source
        self._parser = sql_parser(spark)
        self._frames: dict[Role, DataFrame] = {}
        self._problems: dict[tuple[str, Role], tuple[Problem, ...]] = {}
        self._functions: list[str] = []

    def problems(self, text: str, role: Role) -> tuple[Problem, ...]:
        """All mistakes in an expression; empty when it is fine."""
        if (text, role) not in self._problems:
            self._problems[text, role] = tuple(self._analysed(text, role))
        return self._problems[text, role]

    def _analysed(self, text: str, role: Role) -> Iterator[Problem]:
        try:
            parsed = self._parser.parseExpression(text)
        except PySparkException as failure:
            yield _problem(failure)
            return
        nodes = [(str(node.nodeName()), node) for node in nodes_of(parsed)]
        form = _ALIAS if nodes[0][0] in ("Alias", "MultiAlias") else _meaning_of(_FORMS, *[name for name, _ in nodes])
        form = _CHANGING if _TIME_LITERAL.search(text) else form
        if form is not None:
            yield Problem(text=form)
            return
        # The schema's mistake about one of its fields is reported already.
        if not self._source.fields or self._source.broken.intersection(_WORD.findall(text.lower())):
            return
        frame = self._frame(role)
        try:
            answer = frame.select(F.expr(text).alias("answer"))
        except PySparkException as failure:
            unknown = list(self._unknown(nodes, frame, text))
            yield from unknown or [_problem(failure, _unknown_field(failure, frame))]
            return
        except Py4JError as failure:
            yield Problem(text=str(one_line(failure, "Spark can't analyse it")))
            return
        misfit = self._misfit(answer, role)
        if misfit is not None:
            yield Problem(text=misfit)

    def _frame(self, role: Role) -> DataFrame:
        if role not in self._frames:
            self._frames[role] = self._spark.createDataFrame([], StructType([*self._source.fields, *role.knows]))
        return self._frames[role]

    def _misfit(self, answer: DataFrame, role: Role) -> str | None:
        """Why the pipeline refuses an expression that Spark accepts; None if it does not."""
        plan = analysed_plan(answer)
        for node in nodes_of(plan):
            # The frame itself has no node below it.
            if node.nodeName() != "Project" and node.children().size():
                return _meaning_of(_PLANS, str(node.nodeName())) or _WINDOW
        patterns = jvm_of(self._spark).org.apache.spark.sql.catalyst.trees.TreePattern
        nodes = self._expressions_of(plan)
        if not plan.deterministic() or plan.containsPattern(patterns.CURRENT_LIKE()) or any(map(_changes, nodes)):
            return _CHANGING
        for node in nodes:
            danger = _RAISES if node.nodeName() == "RaiseError" else unbounded(node) or self._bad_pattern(node)
            if danger is not None:
                return danger
        kind = answer.schema[0].dataType
        fits = isinstance(kind, role.takes) if role.takes else is_json_kind(kind)
        return None if fits else f"it is {kind.simpleString().upper()}, and {role.wants}"

    def _bad_pattern(self, node: Any) -> str | None:
        """The error of Java for a pattern in the file, which would fail every batch; None if the pattern is fine."""
        pattern = constant_of(node.children().apply(1)) if str(node.nodeName()) in _PATTERN_SECOND else None
        if pattern is None:
            return None
        try:
            jvm_of(self._spark).java.util.regex.Pattern.compile(str(pattern))
        except PySparkException as failure:
            why = str(failure).partition(" near index")[0]
            return f"the pattern {str(pattern)!r} is no regular expression for Java ({why}): correct it"
        return None

    def _expressions_of(self, plan: Any) -> list[Any]:
        """Every node of the expressions of a plan, and of the expressions that replace some of them."""
        nodes = [*items(plan.expressions())]
        for node in nodes:  # grows while it is walked
            # For example, a cast replaces to_date.
            if is_java_instance(self._spark, node, _REPLACED):
                nodes.append(node.replacement())
            nodes += children(node)
        return nodes

    def _unknown(self, nodes: list[tuple[str, Any]], frame: DataFrame, text: str) -> Iterator[Problem]:
        """Every unknown name in the expression, with the nearest one that exists."""
        reported = set()
        for kind, node in nodes:
            name, problem = "", None
            if kind == "UnresolvedAttribute":
                name = str(node.sql())
                try:
                    frame.select(F.expr(name))
                except PySparkException as failure:
                    problem = _unknown_field(failure, frame)
            elif kind == "UnresolvedFunction" and node.nameParts().size() == 1:
                name = str(node.nameParts().head())
                problem = self._unknown_function(name)
            if problem is not None and name not in reported:
                reported.add(name)
                place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
                yield Problem(text=problem, after=text.count("\n", 0, place.start() if place else 0))

    def _unknown_function(self, name: str) -> str | None:
        if not self._functions:
            self._functions = [str(row[0]) for row in self._spark.sql("SHOW FUNCTIONS").collect()]
        if name.lower() in self._functions:
            return None
        hint = did_you_mean(name.lower(), self._functions) or "see the list of Spark's SQL functions"
        return f"no function {name!r}: {hint}"


def _tells_time(node: Any) -> bool:
    """Whether a text like 'now' is made a date or a time."""
    if node.nodeName() != "Cast" or not node.dataType().typeName().startswith(("date", "timestamp")):
        return False
    return str(constant_of(node.children().apply(0))).strip().lower().startswith(_TIME_WORDS)


def _changes(node: Any) -> bool:
    """Whether the result differs from call to call, which Spark does not know."""
    if node.nodeName() != "AesEncrypt":
        return _tells_time(node)
    mode, start = (constant_of(node.children().apply(at)) for at in (2, 4))
    # Except with ECB, AES draws random first bytes unless the expression gives them.
    return str(mode).upper() != "ECB" and not str(start or "")


def _meaning_of(meanings: dict[str, str], *names: str) -> str | None:
    """The meaning of the first name that starts with a key of `meanings`."""
    return next((meaning for name in names for start, meaning in meanings.items() if name.startswith(start)), None)


def _problem(failure: PySparkException, meaning: str | None = None) -> Problem:
    """The error of Spark; in lastword's words for errors that lastword explains."""
    ours = meaning or _meaning_of(_COMPLAINTS, failure.getCondition() or "")
    line, column = place_of(failure) or (1, None)
    return Problem(text=ours or reason_of(failure), after=line - 1, column=None if ours else column)


def _unknown_field(failure: PySparkException, frame: DataFrame) -> str | None:
    """The message for an unknown field, with the nearest one that exists; None for another error."""
    condition, about = failure.getCondition() or "", failure.getMessageParameters() or {}
    if condition.startswith("UNRESOLVED_COLUMN"):
        name, known = ".".join(_unquoted(about.get("objectName", ""))), frame.columns
    elif condition == "FIELD_NOT_FOUND":
        name, known = ".".join(_unquoted(about.get("fieldName", ""))), _unquoted(about.get("fields", ""))
    else:
        return None
    if name.lower() in RESERVED:
        return f"{name!r} can't be used here: it means {RESERVED[name.lower()]}"
    return f"no field {name!r}: {did_you_mean(name, known) or f'there are {_some(known)}'}"


def _unquoted(names: str) -> list[str]:
    return [name.replace("``", "`") for name in _QUOTED.findall(names)]


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 20 else f"{', '.join(names[:20])}, ..."
