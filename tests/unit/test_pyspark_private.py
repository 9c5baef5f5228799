"""What is private in PySpark is used by one file alone: the one to change when PySpark changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "lastword"
ONLY = PACKAGE / "spark" / "session" / "pyspark_private.py"
FILES = sorted(
    path
    for room in ("spark", "pipeline", "cli/spark", "spark_daemon.py")
    for path in ([PACKAGE / room] if room.endswith(".py") else (PACKAGE / room).rglob("*.py"))
)
# Attributes of SparkContext, SparkSession, DataFrame, Column, readers, writers, streaming queries and the gateway.
PRIVATE = {
    "_accumulatorServer",
    "_activeSession",
    "_active_spark_context",
    "_conf",
    "_gateway",
    "_gateway_client",
    "_getJavaStorageLevel",
    "_instantiatedContext",
    "_instantiatedSession",
    "_javaAccumulator",
    "_jbroadcast",
    "_jc",
    "_jconf",
    "_jdf",
    "_jobj",
    "_jq",
    "_jrdd",
    "_jreader",
    "_jsc",
    "_jsparkSession",
    "_jsqm",
    "_jvm",
    "_jvm_classloader",
    "_jwrite",
    "_lock",
    "_repr_html_",
    "_sc",
    "_session",
    "_temp_dir",
}
# Modules that PySpark does not document.
MODULES = {"pyspark.java_gateway", "py4j.java_gateway"}


def private_uses(code: str) -> Iterator[str]:
    """Attributes in PRIVATE of anything but `self`, their names as text, private names imported, and MODULES."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if name in PRIVATE:
                yield name
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in MODULES)
            case ast.ImportFrom(module=str(module), names=names) if module.startswith(("pyspark", "py4j")):
                for each in names:
                    if {module, f"{module}.{each.name}"} & MODULES or "._" in f".{module}.{each.name}":
                        yield f"{module}.{each.name}"


@pytest.mark.parametrize(
    "code",
    [
        "spark._jvm.java",
        "self._spark._jsparkSession",
        "SparkContext._lock",
        "hasattr(context, '_jsc')",
        "from pyspark import java_gateway",
        "from pyspark.java_gateway import launch_gateway",
        "from pyspark.sql.utils import _x",
        "import py4j.java_gateway",
    ],
)
def test_a_private_use_is_noticed(code: str) -> None:
    assert len(list(private_uses(code))) == 1


@pytest.mark.parametrize("code", ["self._lock", "self._gateway = 1", "share._replace(end=1)", "spark.conf"])
def test_what_is_our_own_or_public_is_not_noticed(code: str) -> None:
    assert list(private_uses(code)) == []


def test_only_one_file_uses_what_is_private_in_pyspark() -> None:
    assert len(FILES) > 60
    assert len(list(private_uses(ONLY.read_text()))) > 15
    assert {path.name: found for path in FILES if path != ONLY and (found := [*private_uses(path.read_text())])} == {}
