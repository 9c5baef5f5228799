"""What a query may reach: topics, and nothing else; with `allow_files` also files. Anything unknown is refused.

A query is checked twice. First parsed, before Spark resolves names: to resolve text.`/x` Spark reads that file, and
some expressions run while Spark analyses a query. Then analysed, with every name resolved.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lastword.core.errors import BadInput
from lastword.spark.query.statements import Statement, plan_nodes, words_of
from lastword.spark.session.catalyst import class_name, items
from lastword.spark.session.pyspark_private import session_state

# The nodes of a parsed query that are allowed. `_expressions` knows where each of them keeps its expressions.
_OPERATORS = frozenset(
    {
        *("Project", "Filter", "Aggregate", "UnresolvedHaving", "UnresolvedQualify", "Distinct"),
        *("Join", "LateralJoin", "Generate"),
        *("Sort", "GlobalLimit", "LocalLimit", "Offset", "Union", "Intersect", "Except", "SubqueryAlias"),
        *("UnresolvedWith", "WithWindowDefinition", "UnresolvedHint", "Pivot", "Unpivot", "Sample"),
        *("UnresolvedSubqueryColumnAliases", "UnresolvedTVFAliases", "UnresolvedTableAliases", "UnresolvedOrdinal"),
        *("RepartitionByExpression", "Repartition", "RebalancePartitions", "PipeOperator", "Window"),
        # With no table below.
        *("OneRowRelation", "LocalRelation", "UnresolvedInlineTable"),
        # Checked by name.
        *("UnresolvedRelation", "UnresolvedTableOrView", "UnresolvedTableValuedFunction"),
        # Information about a query, a table or a function.
        *("ExplainCommand", "DescribeQueryCommand", "DescribeRelation", "DescribeRelationJsonCommand"),
        *("DescribeColumn", "ShowTables", "ShowColumns", "ShowFunctions", "DescribeFunction"),
        *("CurrentNamespace", "UnresolvedFunctionName"),
    }
)
_TABLE_FUNCTIONS = frozenset(
    {
        *("range", "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack"),
        *("json_tuple", "variant_explode", "variant_explode_outer", "sql_keywords", "collations"),
    }
)
# The nodes of an analysed plan that give rows, except the views over topics.
_SOURCES = frozenset({"OneRowRelation", "LocalRelation", "Range", "CTERelationRef", "UnionLoopRef"})
_FILE_SOURCES = frozenset({"LogicalRelation", "DataSourceV2Relation"})
_FILE_FORMATS = frozenset({"text", "json", "csv", "xml", "parquet", "orc", "avro", "binaryfile", "delta"})

_EXPRESSIONS = "org.apache.spark.sql.catalyst."
_RUN_CODE = frozenset(
    {
        *("CallMethodViaReflection", "TryReflect", "ScalaUDF", "PythonUDF", "PythonUDAF", "PythonUDTF"),
        *("UnresolvedPolymorphicPythonUDTF", "ApplyFunctionExpression", "V2Aggregator", "ScalaAggregator"),
    }
)
# The functions of Avro and Protobuf take the path of a schema.
_OF_FILES = frozenset(
    {
        *("InputFileName", "InputFileBlockStart", "InputFileBlockLength"),
        *("FromAvro", "ToAvro", "SchemaOfAvro", "FromProtobuf", "ToProtobuf"),
    }
)
# The number of arguments before the options of these functions: one of the options names a file.
_BEFORE_OPTIONS = {"XmlToStructs": 2, "SchemaOfXml": 1}


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What the queries of a session may reach."""

    spark: SparkSession
    allow_files: bool = False

    def check_parsed(self, statement: Statement, topics: Collection[str]) -> None:
        """Refuses, before Spark resolves any name, every name and function that is not known to be harmless."""
        for node in statement.nodes:
            kind = class_name(node)
            if kind not in _OPERATORS:
                raise _refused(words_of(kind))
            if kind == "UnresolvedRelation":
                _check_options(node.options())
            if kind in ("UnresolvedRelation", "UnresolvedTableOrView", "UnresolvedFunctionName"):
                self._check_name(_parts(node.multipartIdentifier()), topics)
            if kind == "UnresolvedTableValuedFunction":
                name = ".".join(_parts(node.name()))
                if name.lower() not in _TABLE_FUNCTIONS:
                    raise _refused(f"the table function {name}")
            for expression in _expressions(node):
                # Only there a subquery is not among the nodes.
                if kind == "WithWindowDefinition" and "plan" in expression:
                    raise _refused("a subquery in WINDOW", "write it in WITH")
                self._check_function(expression)

    def check_analysed(self, plan: Any, topics: Collection[str]) -> None:
        """Refuses a plan with rows from elsewhere than these topics, or with an expression that runs code."""
        for node in _nodes_above_views(plan, topics):
            kind = class_name(node)
            is_source = not node.children().size() and kind not in _SOURCES
            if is_source and not (self.allow_files and kind in _FILE_SOURCES):
                raise _refused(words_of(kind))
            for expression in _expressions(node, but_for="plan"):
                self._check_class(expression["class"])

    def _check_name(self, parts: list[str], topics: Collection[str]) -> None:
        if len(parts) == 1:
            return
        name, is_file = ".".join(parts), len(parts) == 2 and parts[0].lower() in _FILE_FORMATS
        if name in topics:
            raise BadInput(f"the query: {name} has a dot in it: write it in backquotes, `{name}`")
        if not is_file:
            raise _refused(name)
        if not self.allow_files:
            raise BadInput(f"the query: {name} is a file, and a query sees topics only: allow files with --allow-files")

    def _check_function(self, expression: dict[str, Any]) -> None:
        kind = expression["class"].rpartition(".")[2]
        if kind == "ExpressionWithUnresolvedIdentifier":
            raise _refused("IDENTIFIER(...)", "write the name itself")
        if kind not in ("UnresolvedFunction", "UnresolvedGenerator"):
            return
        # One name in brackets, or several with commas between.
        name = str(expression["nameParts"])[1:-1] if "nameParts" in expression else expression["name"]["funcName"]
        function = session_state(self.spark).catalog().lookupBuiltinOrTempFunction(name)
        if not function.isDefined():
            if ", " in name:
                raise _refused(f"the function {name.replace(', ', '.')}", "write it without a catalog")
            # Spark's error names the nearest function.
            return
        info = function.get()
        if info.getSource() != "built-in":
            raise _refused(f"the function {name}")
        self._check_class(info.getClassName(), name)
        options_from = _BEFORE_OPTIONS.get(info.getClassName().rpartition(".")[2])
        if options_from is not None and expression["num-children"] > options_from and not self.allow_files:
            raise _refused(f"the function {name} with options", "leave them out, or allow files with --allow-files")

    def _check_class(self, name: str, shown: str | None = None) -> None:
        kind = name.rpartition(".")[2]
        what = f"the function {shown or kind}"
        if not name.startswith(_EXPRESSIONS) or kind in _RUN_CODE:
            raise _refused(what, "a query runs no code")
        if kind in _OF_FILES and not self.allow_files:
            raise _refused(what, "allow files with --allow-files")


def _check_options(options: Any) -> None:
    """Refuses options of a file that are settings of Hadoop: some of these name a class, which is then loaded."""
    for name in options.keySet():
        if "." in name:
            raise _refused(f"the option {name}", "leave it out")


def _nodes_above_views(plan: Any, topics: Collection[str]) -> Iterator[Any]:
    """The nodes of an analysed plan, without the views over these topics and the nodes below the views."""

    def is_ours(node: Any) -> bool:
        return class_name(node) == "View" and node.isTempView() and str(node.desc().identifier().table()) in topics

    return plan_nodes(plan, is_left_out=is_ours)


def _expressions(node: Any, but_for: str | None = None) -> Iterator[dict[str, Any]]:
    """Every expression of a node as JSON, with nested expressions, except inside the field `but_for`."""
    own = [*items(node.expressions())]
    if class_name(node) == "WithWindowDefinition":
        # In a map, where the node itself does not find them.
        own += items(node.windowDefinitions().values().toSeq())
    for expression in own:
        yield from _objects(json.loads(expression.toJSON()), but_for)


def _objects(value: Any, but_for: str | None) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for each in value:
            yield from _objects(each, but_for)
    elif isinstance(value, dict):
        if "class" in value:
            yield value
        for name, each in value.items():
            if name != but_for:
                yield from _objects(each, but_for)


def _parts(name: Any) -> list[str]:
    return [str(part) for part in items(name)]


def _refused(what: str, next_step: str = "name topics alone (SHOW TABLES lists them)") -> BadInput:
    return BadInput(f"the query: {what} is refused, because a query sees topics and nothing else: {next_step}")
